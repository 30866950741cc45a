/* From the bytes of an ONNX file to its graphs, nodes, values and the names between them. Where
 * things are is read from the wire format; protobuf-c unpacks one node or value description at a
 * time, so that weights are never copied as a whole. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/onnx_model.h"
#include "onnx.pb-c.h"

/* ---- Strings ---- */

const char *pp_onnx_text(pp_onnx *onnx, const char *text) {
  if (!text || !*text)
    return "";
  char *copy = PP_ROOM(&onnx->text) ? strdup(text) : NULL;
  if (copy)
    onnx->text.items[onnx->text.count++] = copy;
  return copy;
}

/* A string field of the file; it holds no zero byte. */
static const char *field_text(pp_onnx *onnx, const pp_wire_field *field) {
  char *copy = PP_ROOM(&onnx->text) ? malloc(field->end - field->body + 1) : NULL;
  if (!copy)
    return NULL;
  memcpy(copy, onnx->bytes + field->body, field->end - field->body);
  copy[field->end - field->body] = 0;
  return onnx->text.items[onnx->text.count++] = copy;
}

/* ---- Values ---- */

static pp_status add_value(pp_onnx *onnx, const char *name, uint32_t graph, uint32_t producer,
                           unsigned flags, size_t at, pp_error *error) {
  if (onnx->value.count >= INT32_MAX)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, at, "more than 2^31-1 values");
  if (!PP_ROOM(&onnx->value))
    return pp_fail_memory(error);
  onnx->value.items[onnx->value.count++] = (pp_onnx_value){
      .name = name, .graph = graph, .producer = producer, .flags = (uint8_t)flags, .at = at};
  return PP_OK;
}

static pp_status add_dimension(pp_onnx *onnx, int64_t size, const char *symbol, pp_error *error) {
  if (!PP_ROOM(&onnx->dim) || !symbol)
    return pp_fail_memory(error);
  pp_onnx_dimension dimension = {size, symbol, size >= 0};
  /* What is not set counts as 1; a name beats the "*" that stands for all. */
  const pp_read_options *options = onnx->options;
  for (size_t i = 0; size < 0 && i < options->dimensions; i++)
    if (!strcmp(options->dimension[i].name, symbol) ||
        (!dimension.set && !strcmp(options->dimension[i].name, "*"))) {
      dimension.size = options->dimension[i].value;
      dimension.set = true;
    }
  if (!dimension.set)
    dimension.size = 1;
  onnx->dim.items[onnx->dim.count++] = dimension;
  return PP_OK;
}

static pp_status add_shape(pp_onnx *onnx, const Onnx__TensorShapeProto *shape, pp_onnx_info *info,
                           pp_error *error) {
  pp_status status = PP_OK;
  info->state = SHAPE_KNOWN;
  info->dim = onnx->dim.count;
  if (shape->n_dim > INT32_MAX)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, info->at, "more than 2^31-1 dimensions");
  info->dims = (uint32_t)shape->n_dim;
  for (size_t i = 0; i < shape->n_dim && !status; i++) {
    const Onnx__TensorShapeProto__Dimension *dim = shape->dim[i];
    if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
        dim->dim_value >= 0)
      status = add_dimension(onnx, dim->dim_value, "", error);
    else if (dim->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
      status = add_dimension(onnx, -1, pp_onnx_text(onnx, dim->dim_param), error);
    else /* absent, or -1 as some exporters say it */
      status = add_dimension(onnx, -1, "", error);
  }
  return status;
}

static pp_status add_type(pp_onnx *onnx, const Onnx__TypeProto *type, pp_onnx_info *info,
                          pp_error *error) {
  /* An optional tensor is there at worst. */
  while (type && type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE)
    type = type->optional_type->elem_type;
  if (!type || type->value_case == ONNX__TYPE_PROTO__VALUE__NOT_SET) {
    info->state = SHAPE_UNKNOWN;
    return PP_OK;
  }
  if (type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
    info->state = SHAPE_OTHER;
    return PP_OK;
  }
  info->state = SHAPE_UNKNOWN;
  info->type = type->tensor_type->has_elem_type ? type->tensor_type->elem_type : 0;
  return type->tensor_type->shape ? add_shape(onnx, type->tensor_type->shape, info, error) : PP_OK;
}

static pp_status add_info(pp_onnx *onnx, const pp_onnx_info *info, pp_error *error) {
  if (!PP_ROOM(&onnx->info))
    return pp_fail_memory(error);
  onnx->info.items[onnx->info.count++] = *info;
  return PP_OK;
}

static pp_status add_reference(pp_onnx *onnx, const char *name, uint32_t value, pp_error *error) {
  if (!name || !PP_ROOM(&onnx->reference))
    return pp_fail_memory(error);
  onnx->reference.items[onnx->reference.count++] = (pp_onnx_reference){name, value};
  return PP_OK;
}

/* A ValueInfoProto: of an input, an output (flags say which), or any value. */
static pp_status decode_info(pp_onnx *onnx, uint32_t graph, const pp_wire_field *field,
                             unsigned flags, pp_error *error) {
  Onnx__ValueInfoProto *proto =
      onnx__value_info_proto__unpack(NULL, field->end - field->body, onnx->bytes + field->body);
  if (!proto)
    return pp_fail_memory(error);
  pp_onnx_info info = {.graph = graph, .at = field->at, .state = SHAPE_UNKNOWN};
  info.name = pp_onnx_text(onnx, proto->name);
  pp_status status = info.name ? add_type(onnx, proto->type, &info, error) : pp_fail_memory(error);
  onnx__value_info_proto__free_unpacked(proto, NULL);
  if (status || (status = add_info(onnx, &info, error)))
    return status;
  if (flags & VALUE_INPUT)
    return add_value(onnx, info.name, graph, PP_ONNX_NONE, VALUE_INPUT, field->at, error);
  if (flags & VALUE_OUTPUT) {
    onnx->graph.items[graph].results++;
    return add_reference(onnx, info.name, PP_ONNX_NONE, error);
  }
  return PP_OK;
}

/* ---- Initialisers: their names and shapes, straight from the wire ---- */

/* TensorProto.dims: one number, or many packed ones. */
static pp_status decode_dims(pp_onnx *onnx, const pp_wire_field *field, pp_onnx_info *info,
                             pp_error *error) {
  if (field->type == WIRE_VARINT) {
    info->dims++;
    return add_dimension(onnx, (int64_t)field->varint < 0 ? 0 : (int64_t)field->varint, "", error);
  }
  pp_status status = PP_OK;
  for (size_t at = field->body; at < field->end && !status; info->dims++) {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      uint8_t byte = onnx->bytes[at++];
      if (shift < 64)
        value |= (uint64_t)(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        break;
    }
    status = add_dimension(onnx, (int64_t)value < 0 ? 0 : (int64_t)value, "", error);
  }
  return status;
}

static pp_status decode_initializer(pp_onnx *onnx, uint32_t graph, const pp_wire_field *tensor,
                                    pp_error *error) {
  pp_onnx_info info = {.name = "", .graph = graph, .at = tensor->at, .state = SHAPE_KNOWN};
  info.dim = onnx->dim.count;
  pp_status status = PP_OK;
  pp_wire_field field;
  for (size_t at = tensor->body; !status && pp_wire_step(onnx->bytes, tensor->end, &at, &field);) {
    if (field.number == 1)
      status = decode_dims(onnx, &field, &info, error);
    else if (field.number == 2)
      info.type = (int32_t)field.varint;
    else if (field.number == 8 && !(info.name = field_text(onnx, &field)))
      status = pp_fail_memory(error);
  }
  if (status || (status = add_info(onnx, &info, error)))
    return status;
  return add_value(onnx, info.name, graph, PP_ONNX_NONE, VALUE_INITIALIZER | VALUE_CONSTANT,
                   tensor->at, error);
}

/* A sparse one has the name of its values. */
static pp_status decode_sparse(pp_onnx *onnx, uint32_t graph, const pp_wire_field *sparse,
                               pp_error *error) {
  const char *name = "";
  pp_wire_field values, field;
  for (size_t at = sparse->body; pp_wire_step(onnx->bytes, sparse->end, &at, &values);) {
    if (values.number != 1)
      continue;
    for (size_t in = values.body; pp_wire_step(onnx->bytes, values.end, &in, &field);)
      if (field.number == 8 && !(name = field_text(onnx, &field)))
        return pp_fail_memory(error);
  }
  return add_value(onnx, name, graph, PP_ONNX_NONE, VALUE_INITIALIZER | VALUE_CONSTANT, sparse->at,
                   error);
}

/* ---- Nodes ---- */

static pp_status add_graph(pp_onnx *onnx, const pp_wire_field *field, uint32_t owner,
                           const char *attribute, pp_error *error) {
  if (onnx->graph.count >= INT32_MAX)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, field->at, "more than 2^31-1 graphs");
  if (!attribute || !PP_ROOM(&onnx->graph))
    return pp_fail_memory(error);
  onnx->graph.items[onnx->graph.count++] = (pp_onnx_graph){
      .body = field->body, .end = field->end, .owner = owner, .attribute = attribute};
  return PP_OK;
}

/* The graphs in an attribute become graphs of the model; their turn comes later. */
static pp_status find_bodies(pp_onnx *onnx, uint32_t owner, const pp_wire_field *attribute,
                             pp_error *error) {
  pp_wire_field field;
  const char *name = "";
  bool any = false, one = false;
  pp_status status = PP_OK;
  for (size_t at = attribute->body; pp_wire_step(onnx->bytes, attribute->end, &at, &field);)
    any |= field.number == 6 || field.number == 11;
  if (!any)
    return PP_OK;
  for (size_t at = attribute->body; pp_wire_step(onnx->bytes, attribute->end, &at, &field);)
    if (field.number == 1 && !(name = field_text(onnx, &field)))
      return pp_fail_memory(error);
  for (size_t at = attribute->body;
       !status && pp_wire_step(onnx->bytes, attribute->end, &at, &field);) {
    /* protobuf would merge the two: then no node has one place. */
    if (field.number == 6 && one)
      return pp_fail_at(error, PP_ERROR_INPUT, field.at, "an attribute has two graphs");
    if (field.number != 6 && field.number != 11)
      continue;
    one |= field.number == 6;
    onnx->node.items[owner].callees++;
    status = add_graph(onnx, &field, owner, name, error);
  }
  return status;
}

static int64_t attribute_int(const Onnx__NodeProto *proto, const char *name, int64_t absent) {
  for (size_t i = 0; i < proto->n_attribute; i++)
    if (proto->attribute[i]->name && !strcmp(proto->attribute[i]->name, name))
      return proto->attribute[i]->has_i ? proto->attribute[i]->i : absent;
  return absent;
}

static const char *attribute_string(pp_onnx *onnx, const Onnx__NodeProto *proto, const char *name) {
  for (size_t i = 0; i < proto->n_attribute; i++) {
    const Onnx__AttributeProto *attribute = proto->attribute[i];
    if (!attribute->name || strcmp(attribute->name, name) != 0 || !attribute->has_s)
      continue;
    char *copy = PP_ROOM(&onnx->text) ? malloc(attribute->s.len + 1) : NULL;
    if (!copy)
      return NULL;
    memcpy(copy, attribute->s.data, attribute->s.len);
    copy[attribute->s.len] = 0;
    return onnx->text.items[onnx->text.count++] = copy;
  }
  return "";
}

/* The shape of what a Constant holds, if it is a tensor: models seldom say it elsewhere. */
static pp_status add_constant(pp_onnx *onnx, const Onnx__NodeProto *proto, uint32_t graph,
                              size_t at, pp_error *error) {
  if (!proto->op_type || strcmp(proto->op_type, "Constant") != 0 || !proto->n_output)
    return PP_OK;
  pp_status status = PP_OK;
  for (size_t i = 0; i < proto->n_attribute && !status; i++) {
    const Onnx__TensorProto *tensor = proto->attribute[i]->t;
    if (!tensor || tensor->n_dims > INT32_MAX)
      continue;
    pp_onnx_info info = {.graph = graph, .at = at, .state = SHAPE_KNOWN};
    info.name = pp_onnx_text(onnx, proto->output[0]);
    info.type = tensor->has_data_type ? tensor->data_type : 0;
    info.dim = onnx->dim.count;
    info.dims = (uint32_t)tensor->n_dims;
    for (size_t k = 0; k < tensor->n_dims && !status; k++)
      status = add_dimension(onnx, tensor->dims[k] < 0 ? 0 : tensor->dims[k], "", error);
    if (!status)
      status = info.name ? add_info(onnx, &info, error) : pp_fail_memory(error);
  }
  return status;
}

static pp_status decode_ends(pp_onnx *onnx, const Onnx__NodeProto *proto, uint32_t index,
                             pp_error *error) {
  pp_onnx_node *node = onnx->node.items + index;
  if (proto->n_input > INT32_MAX || proto->n_output > INT32_MAX)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, node->at, "more than 2^31-1 inputs or outputs");
  pp_status status = PP_OK;
  node->inputs = (uint32_t)proto->n_input;
  node->outputs = (uint32_t)proto->n_output;
  node->input = onnx->reference.count;
  for (size_t i = 0; i < proto->n_input && !status; i++)
    status = add_reference(onnx, pp_onnx_text(onnx, proto->input[i]), PP_ONNX_NONE, error);
  node->output = onnx->reference.count;
  for (size_t i = 0; i < proto->n_output && !status; i++) {
    const char *name = pp_onnx_text(onnx, proto->output[i]);
    uint32_t value = name && *name ? (uint32_t)onnx->value.count : PP_ONNX_NONE;
    status = add_reference(onnx, name, value, error);
    if (!status && value != PP_ONNX_NONE)
      status = add_value(onnx, name, node->graph, index, 0, node->at, error);
  }
  return status;
}

static pp_status decode_proto(pp_onnx *onnx, const Onnx__NodeProto *proto, uint32_t index,
                              pp_error *error) {
  pp_onnx_node *node = onnx->node.items + index;
  node->name = pp_onnx_text(onnx, proto->name);
  node->operator_ = pp_onnx_text(onnx, proto->op_type);
  node->domain = pp_onnx_text(onnx, proto->domain);
  if (node->domain && !strcmp(node->domain, "ai.onnx")) /* the long name of "" */
    node->domain = "";
  node->equation = attribute_string(onnx, proto, "equation");
  if (!node->name || !node->operator_ || !node->domain || !node->equation)
    return pp_fail_memory(error);
  node->transposed = attribute_int(proto, "transA", 0) != 0;
  /* Dropout trains as its third input says (from version 12), never (7 to 11), or unless is_test
   * says otherwise. */
  if (onnx->opset >= 12)
    node->training = proto->n_input > 2 && *proto->input[2];
  else
    node->training = onnx->opset < 7 && !attribute_int(proto, "is_test", 0);
  pp_status status = decode_ends(onnx, proto, index, error);
  return status ? status : add_constant(onnx, proto, node->graph, node->at, error);
}

static pp_status decode_node(pp_onnx *onnx, uint32_t graph, const pp_wire_field *record,
                             pp_error *error) {
  if (onnx->node.count >= INT32_MAX - 1)
    return pp_fail_at(error, PP_ERROR_OVERFLOW, record->at, "more than 2^31-2 nodes");
  if (!PP_ROOM(&onnx->node))
    return pp_fail_memory(error);
  uint32_t index = (uint32_t)onnx->node.count++;
  onnx->node.items[index] = (pp_onnx_node){.at = record->at,
                                           .body = record->body,
                                           .end = record->end,
                                           .graph = graph,
                                           .callee = (uint32_t)onnx->graph.count,
                                           .statement = PP_ONNX_NONE};
  pp_status status = PP_OK;
  pp_wire_field field;
  for (size_t at = record->body; !status && pp_wire_step(onnx->bytes, record->end, &at, &field);)
    if (field.number == 5)
      status = find_bodies(onnx, index, &field, error);
  if (status)
    return status;
  Onnx__NodeProto *proto =
      onnx__node_proto__unpack(NULL, record->end - record->body, onnx->bytes + record->body);
  if (!proto) /* the bytes have been checked */
    return pp_fail_memory(error);
  status = decode_proto(onnx, proto, index, error);
  onnx__node_proto__free_unpacked(proto, NULL);
  return status;
}

/* ---- Graphs ---- */

static pp_status decode_part(pp_onnx *onnx, uint32_t graph, const pp_wire_field *field,
                             pp_error *error) {
  switch (field->number) {
  case 1:
    return decode_node(onnx, graph, field, error);
  case 5:
    return decode_initializer(onnx, graph, field, error);
  case 11:
    return decode_info(onnx, graph, field, VALUE_INPUT, error);
  case 13:
    return decode_info(onnx, graph, field, 0, error);
  case 15:
    return decode_sparse(onnx, graph, field, error);
  }
  return PP_OK;
}

static pp_status decode_graph(pp_onnx *onnx, uint32_t index, pp_error *error) {
  size_t body = onnx->graph.items[index].body, end = onnx->graph.items[index].end;
  pp_wire_field field;
  pp_status status = PP_OK;
  onnx->graph.items[index].node = (uint32_t)onnx->node.count;
  onnx->graph.items[index].value = (uint32_t)onnx->value.count;
  for (size_t at = body; !status && pp_wire_step(onnx->bytes, end, &at, &field);)
    status = decode_part(onnx, index, &field, error);
  onnx->graph.items[index].nodes = (uint32_t)onnx->node.count - onnx->graph.items[index].node;
  onnx->graph.items[index].result = onnx->reference.count;
  for (size_t at = body; !status && pp_wire_step(onnx->bytes, end, &at, &field);)
    if (field.number == 12)
      status = decode_info(onnx, index, &field, VALUE_OUTPUT, error);
  return status;
}

/* ---- The model ---- */

static pp_status decode_opset(pp_onnx *onnx, const pp_wire_field *field, pp_error *error) {
  Onnx__OperatorSetIdProto *proto = onnx__operator_set_id_proto__unpack(
      NULL, field->end - field->body, onnx->bytes + field->body);
  if (!proto)
    return pp_fail_memory(error);
  if (!proto->domain || !*proto->domain || !strcmp(proto->domain, "ai.onnx"))
    onnx->opset = proto->version;
  onnx__operator_set_id_proto__free_unpacked(proto, NULL);
  return PP_OK;
}

/* A function of the model itself: its name alone matters, to know its calls. */
static pp_status decode_function(pp_onnx *onnx, const pp_wire_field *function, pp_error *error) {
  const char *name = "", *domain = "";
  pp_wire_field field;
  for (size_t at = function->body; pp_wire_step(onnx->bytes, function->end, &at, &field);) {
    if (field.number == 1)
      name = field_text(onnx, &field);
    else if (field.number == 10)
      domain = field_text(onnx, &field);
    if (!name || !domain)
      return pp_fail_memory(error);
  }
  size_t size = strlen(domain) + strlen(name) + 2;
  char *full = PP_ROOM(&onnx->text) && PP_ROOM(&onnx->function) ? malloc(size) : NULL;
  if (!full)
    return pp_fail_memory(error);
  snprintf(full, size, "%s:%s", strcmp(domain, "ai.onnx") ? domain : "", name);
  onnx->text.items[onnx->text.count++] = full;
  onnx->function.items[onnx->function.count++] = full;
  return PP_OK;
}

static pp_status decode_metadata(pp_onnx *onnx, const pp_wire_field *field, pp_error *error) {
  Onnx__StringStringEntryProto *proto = onnx__string_string_entry_proto__unpack(
      NULL, field->end - field->body, onnx->bytes + field->body);
  if (!proto)
    return pp_fail_memory(error);
  if (proto->key && !strcmp(proto->key, "peakproof.shapes"))
    onnx->inferred = true;
  onnx__string_string_entry_proto__free_unpacked(proto, NULL);
  return PP_OK;
}

static pp_status decode_model_part(pp_onnx *onnx, const pp_wire_field *field, pp_error *error) {
  switch (field->number) {
  case 7:
    if (onnx->graph.count) /* protobuf would merge them */
      return pp_fail_at(error, PP_ERROR_INPUT, field->at, "the model has two graphs");
    return add_graph(onnx, field, PP_ONNX_NONE, "", error);
  case 8:
    return decode_opset(onnx, field, error);
  case 14:
    return decode_metadata(onnx, field, error);
  case 25:
    return decode_function(onnx, field, error);
  }
  return PP_OK;
}

static int compare_functions(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* ---- Files with the data of tensors ---- */

static bool is_text(const pp_onnx *onnx, const pp_wire_field *field, const char *text) {
  size_t size = field->end - field->body;
  return size == strlen(text) && !memcmp(onnx->bytes + field->body, text, size);
}

/* Notes the "location" of external data, wherever in the model the tensor is. The entry is not
 * checked yet: what is no entry ends the loop. */
static bool note_location(const char *name, const pp_wire_field *entry, void *data) {
  pp_onnx *onnx = data;
  if (strcmp(name, "external_data"))
    return true;
  pp_wire_field field, value = {0};
  bool location = false;
  for (size_t at = entry->body; pp_wire_step(onnx->bytes, entry->end, &at, &field);)
    if (field.type == WIRE_BYTES && field.number == 1)
      location = is_text(onnx, &field, "location");
    else if (field.type == WIRE_BYTES && field.number == 2)
      value = field;
  size_t size = value.end - value.body;
  const uint8_t *text = onnx->bytes + value.body;
  size_t known = onnx->location.count;
  if (!location || !size || memchr(text, 0, size))
    return true;
  if (known && !strncmp(onnx->location.items[known - 1], (const char *)text, size) &&
      !onnx->location.items[known - 1][size])
    return true; /* most often all weights are in one file */
  if (!PP_ROOM(&onnx->location))
    return false;
  char *copy = strndup((const char *)text, size);
  if (copy)
    onnx->location.items[onnx->location.count++] = copy;
  return copy != NULL;
}

/* ---- The model ---- */

pp_status pp_onnx_decode(pp_onnx *onnx, pp_error *error) {
  pp_status status = pp_wire_check(&onnx__model_proto__descriptor, onnx->bytes, onnx->size,
                                   note_location, onnx, error);
  pp_wire_field field;
  for (size_t at = 0; !status && pp_wire_step(onnx->bytes, onnx->size, &at, &field);)
    status = decode_model_part(onnx, &field, error);
  if (!status && !onnx->graph.count)
    status = pp_fail_at(error, PP_ERROR_INPUT, 0, "the model has no graph");
  if (onnx->function.count)
    qsort(onnx->function.items, onnx->function.count, sizeof *onnx->function.items,
          compare_functions);
  /* Bodies join the end of the list while it is worked off. */
  for (uint32_t i = 0; !status && i < onnx->graph.count; i++)
    status = decode_graph(onnx, i, error);
  return status;
}
