/* An ONNX model with nodes that run again, on the wire.
 *
 * The graph's message is written anew from its own fields: every field that is no node as it is,
 * and where the first node stood all nodes, in the order in which they run. A node whose values
 * have other names keeps all but its input and output names; one that runs again gets a name of its
 * own too. Each added value gets a copy of the original's ValueInfoProto under its name. Bodies of
 * control flow are permuted only. What was written is read and compared before a byte leaves the
 * house. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/collect.h"
#include "format/onnx_model.h"
#include "format/rewriting.h"

/* Field numbers (onnx.proto). */
enum { MODEL_GRAPH = 7 };
enum { GRAPH_NODE = 1, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12, GRAPH_VALUE_INFO = 13 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_NAME = 3 };
enum { INFO_NAME = 1 };

struct writer {
  const pp_onnx *onnx;
  const pp_onnx_graph *graph; /* the model's */
  const pp_model_rewriting *it;
  const uint8_t *bytes; /* the file with its bodies permuted: all records keep their places */
  const char **name;    /* of each storage of the rewritten program */
  PP_VECTOR(char *) made;
  pp_index *storage; /* of each value of the graph, or -1 */
  uint32_t *value;   /* of each storage of the original */
  uint32_t values;
  pp_index *copy; /* of each storage of the original: what it is called now */
  pp_index *runs; /* of each statement, so far */
  pp_collected out;
  pp_error *error;
};

/* ---- Bytes ---- */

static bool put_varint(pp_collected *out, uint64_t value) {
  uint8_t bytes[10];
  size_t size = 0;
  for (; value >= 0x80; value >>= 7)
    bytes[size++] = (uint8_t)(value | 0x80);
  bytes[size++] = (uint8_t)value;
  return pp_collect(bytes, size, out);
}

/* A field of bytes: tag, length, payload. */
static bool put_field(pp_collected *out, uint32_t number, const void *bytes, size_t size) {
  return put_varint(out, (uint64_t)number << 3 | WIRE_BYTES) && put_varint(out, size) &&
         pp_collect(bytes, size, out);
}

static bool put_raw(pp_collected *out, const uint8_t *bytes, const pp_wire_field *field) {
  return pp_collect(bytes + field->at, field->end - field->at, out);
}

/* ---- Names ---- */

/* As onnx_build.c numbers storages. */
static bool number_values(struct writer *w) {
  const pp_onnx *onnx = w->onnx;
  uint32_t end = onnx->graph.count > 1 ? onnx->graph.items[1].value : (uint32_t)onnx->value.count;
  pp_index next = 0;
  w->values = end - w->graph->value;
  w->storage = pp_alloc(w->values, sizeof *w->storage);
  w->value = pp_alloc(w->values, sizeof *w->value);
  for (uint32_t i = 0; w->storage && w->value && i < w->values; i++) {
    bool constant = onnx->value.items[w->graph->value + i].flags & VALUE_CONSTANT;
    w->storage[i] = constant ? -1 : next;
    if (!constant)
      w->value[next++] = w->graph->value + i;
  }
  return w->storage && w->value;
}

static bool is_taken(const struct writer *w, const char *name) {
  for (size_t i = 0; i < w->onnx->value.count; i++)
    if (!strcmp(w->onnx->value.items[i].name, name))
      return true;
  for (size_t i = 0; i < w->made.count; i++)
    if (!strcmp(w->made.items[i], name))
      return true;
  return false;
}

/* NAME~1, or the next number that no value has, in any graph. */
static const char *make_name(struct writer *w, const char *old) {
  size_t size = strlen(old) + 24;
  char *name = PP_ROOM(&w->made) ? pp_alloc(size, 1) : NULL;
  if (!name)
    return NULL;
  for (int number = 1;; number++) {
    snprintf(name, size, "%s~%d", old, number);
    if (!is_taken(w, name))
      break;
  }
  w->made.items[w->made.count++] = name;
  return name;
}

static bool name_storages(struct writer *w) {
  pp_index m = pp_program_storages(w->it->original), all = pp_program_storages(w->it->program);
  w->name = pp_alloc((size_t)all, sizeof *w->name);
  w->copy = pp_alloc((size_t)m, sizeof *w->copy);
  w->runs = pp_zalloc((size_t)pp_program_statements(w->it->original), sizeof *w->runs);
  if (!w->name || !w->copy || !w->runs || !number_values(w))
    return false;
  for (pp_index s = 0; s < all; s++) {
    const char *old = w->onnx->value.items[w->value[w->it->storage[s]]].name;
    if (s < m)
      w->copy[s] = s;
    if (!(w->name[s] = s < m ? old : make_name(w, old)))
      return false;
  }
  return true;
}

/* The present name of a value, or NULL if it is its own. */
static const char *new_name(const struct writer *w, uint32_t value) {
  uint32_t i = value - w->graph->value;
  if (value == PP_ONNX_NONE || value < w->graph->value || i >= w->values || w->storage[i] < 0)
    return NULL;
  pp_index s = w->storage[i];
  return w->copy[s] == s ? NULL : w->name[w->copy[s]];
}

/* ---- Nodes ---- */

/* Bodies name what they capture: such a value must keep its name there. */
static pp_status check_captures(struct writer *w, const pp_onnx_node *node) {
  for (uint32_t i = 0; i < node->captures; i++) {
    uint32_t value = w->onnx->capture.items[node->capture + i].value;
    if (new_name(w, value))
      return pp_fail_at(w->error, PP_ERROR_INPUT, node->at,
                        "a body of this node uses value \"%.100s\", which is made again for it: "
                        "that cannot be written",
                        w->onnx->value.items[value].name);
  }
  return PP_OK;
}

/* A node under the present names; `again`: it ran so often before. */
static bool put_node(struct writer *w, const pp_onnx_node *node, pp_index again) {
  pp_collected message = {0};
  pp_wire_field field;
  uint32_t input = 0, output = 0;
  bool done = true;
  for (size_t at = node->body; done && pp_wire_step(w->bytes, node->end, &at, &field);) {
    const char *name = NULL;
    char numbered[32];
    if (field.number == NODE_INPUT)
      name = new_name(w, w->onnx->reference.items[node->input + input++].value);
    else if (field.number == NODE_OUTPUT)
      name = new_name(w, w->onnx->reference.items[node->output + output++].value);
    if (name)
      done = put_field(&message, field.number, name, strlen(name));
    else if (field.number == NODE_NAME && again && field.end > field.body) {
      snprintf(numbered, sizeof numbered, "~%d", again);
      pp_collected longer = {0};
      done = pp_collect(w->bytes + field.body, field.end - field.body, &longer) &&
             pp_collect(numbered, strlen(numbered), &longer) &&
             put_field(&message, NODE_NAME, longer.bytes, longer.size);
      free(longer.bytes);
    } else
      done = put_raw(&message, w->bytes, &field);
  }
  done = done && put_field(&w->out, GRAPH_NODE, message.bytes, message.size);
  free(message.bytes);
  return done;
}

/* Run i of the rewritten program. */
static pp_status put_run(struct writer *w, pp_index i) {
  pp_index v = w->it->statement[i];
  pp_statement_info info = pp_program_statement(w->it->program, i);
  const pp_onnx_node *node = w->onnx->node.items + w->graph->statement[v];
  for (size_t k = 0; k < info.accesses; k++)
    w->copy[w->it->storage[info.access[k].storage]] = info.access[k].storage;
  pp_status status = check_captures(w, node);
  if (status)
    return status;
  return put_node(w, node, w->runs[v]++) ? PP_OK : pp_fail_memory(w->error);
}

/* First runs, as a permutation of the original's statements, and where each is in the sequence. */
static bool find_first_runs(const struct writer *w, pp_index **order, pp_index **at) {
  pp_index n = pp_program_statements(w->it->original), found = 0;
  bool *ran = pp_zalloc((size_t)n, sizeof *ran);
  *order = pp_alloc((size_t)n, sizeof **order);
  *at = pp_alloc((size_t)n, sizeof **at);
  bool done = ran && *order && *at;
  for (pp_index k = 0; done && k < pp_program_statements(w->it->program); k++) {
    pp_index v = w->it->statement[w->it->order ? w->it->order[k] : k];
    if (ran[v])
      continue;
    ran[v] = true;
    (*at)[found] = k;
    (*order)[found++] = v;
  }
  free(ran);
  return done;
}

/* Nodes that are no statements stand where they would without repetitions. */
static pp_status put_placed(struct writer *w, const uint32_t *place, const pp_index *at) {
  pp_index runs = pp_program_statements(w->it->program), k = 0;
  pp_index n = pp_program_statements(w->it->original), first = 0;
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < w->graph->nodes && !status; i++) {
    const pp_onnx_node *node = w->onnx->node.items + place[i];
    if (node->folded) {
      if (!put_node(w, node, 0))
        status = pp_fail_memory(w->error);
      continue;
    }
    first++;
    for (pp_index end = first < n ? at[first] : runs; k < end && !status; k++)
      status = put_run(w, w->it->order ? w->it->order[k] : k);
  }
  return status;
}

static pp_status put_nodes(struct writer *w) {
  pp_index *order = NULL, *at = NULL;
  uint32_t *place = pp_alloc(w->graph->nodes, sizeof *place);
  bool ready = place && find_first_runs(w, &order, &at);
  pp_status status =
      ready ? pp_onnx_place(w->onnx, 0, order, place, w->error) : pp_fail_memory(w->error);
  if (!status)
    status = put_placed(w, place, at);
  free(order);
  free(at);
  free(place);
  return status;
}

/* ---- Shapes ---- */

static bool is_named(const struct writer *w, const pp_wire_field *info, const char *name) {
  pp_wire_field field;
  for (size_t at = info->body; pp_wire_step(w->bytes, info->end, &at, &field);)
    if (field.number == INFO_NAME)
      return field.end - field.body == strlen(name) &&
             !memcmp(w->bytes + field.body, name, field.end - field.body);
  return false;
}

/* What the graph says of a value, in any of its three lists. */
static bool find_info(const struct writer *w, const char *name, pp_wire_field *info) {
  for (size_t at = w->graph->body; pp_wire_step(w->bytes, w->graph->end, &at, info);)
    if ((info->number == GRAPH_INPUT || info->number == GRAPH_OUTPUT ||
         info->number == GRAPH_VALUE_INFO) &&
        is_named(w, info, name))
      return true;
  return false;
}

static bool put_info(struct writer *w, pp_index s) {
  pp_collected message = {0};
  pp_wire_field info, field;
  if (!find_info(w, w->name[w->it->storage[s]], &info))
    return true;
  bool done = true;
  for (size_t at = info.body; done && pp_wire_step(w->bytes, info.end, &at, &field);)
    done = field.number == INFO_NAME
               ? put_field(&message, INFO_NAME, w->name[s], strlen(w->name[s]))
               : put_raw(&message, w->bytes, &field);
  done = done && put_field(&w->out, GRAPH_VALUE_INFO, message.bytes, message.size);
  free(message.bytes);
  return done;
}

/* ---- The file ---- */

static pp_status put_graph(struct writer *w) {
  pp_wire_field field;
  bool nodes = false, done = true;
  pp_status status = PP_OK;
  for (size_t at = w->graph->body;
       !status && done && pp_wire_step(w->bytes, w->graph->end, &at, &field);) {
    if (field.number != GRAPH_NODE)
      done = put_raw(&w->out, w->bytes, &field);
    else if (!nodes) {
      nodes = true;
      status = put_nodes(w);
    }
  }
  pp_index m = pp_program_storages(w->it->original);
  for (pp_index s = m; !status && done && s < pp_program_storages(w->it->program); s++)
    done = put_info(w, s);
  return status || done ? status : pp_fail_memory(w->error);
}

/* w->out becomes the whole file. */
static pp_status put_model(struct writer *w) {
  pp_collected file = {0};
  pp_wire_field field;
  bool done = true;
  for (size_t at = 0; done && pp_wire_step(w->bytes, w->onnx->size, &at, &field);)
    done = field.number == MODEL_GRAPH && field.body == w->graph->body
               ? put_field(&file, MODEL_GRAPH, w->out.bytes, w->out.size)
               : put_raw(&file, w->bytes, &field);
  free(w->out.bytes);
  w->out = file;
  return done ? PP_OK : pp_fail_memory(w->error);
}

/* The file with its bodies permuted, malloc'ed. */
static pp_status permute_bodies(const struct writer *w, const pp_model_rewriting *all,
                                uint8_t **bytes) {
  size_t graphs = w->onnx->graph.count;
  uint32_t **place = pp_zalloc(graphs, sizeof *place);
  pp_status status = place ? PP_OK : pp_fail_memory(w->error);
  for (uint32_t i = 1; i < graphs && !status; i++) {
    if (all[i].program)
      status =
          pp_fail(w->error, PP_ERROR_USAGE, "nodes in the bodies of control flow cannot run again");
    if (status || !all[i].order)
      continue;
    if (!(place[i] = pp_alloc(w->onnx->graph.items[i].nodes, sizeof **place)))
      status = pp_fail_memory(w->error);
    else
      status = pp_onnx_place(w->onnx, i, all[i].order, place[i], w->error);
  }
  if (!status)
    status = pp_onnx_splice(w->onnx, place, bytes, w->error);
  for (size_t i = 0; place && i < graphs; i++)
    free(place[i]);
  free(place);
  return status;
}

/* ---- The check ---- */

/* The storage of the rewriting that each storage of the written program is, by name. */
static bool match_storages(const struct writer *w, const pp_onnx *written, pp_index *match) {
  uint32_t end =
      written->graph.count > 1 ? written->graph.items[1].value : (uint32_t)written->value.count;
  pp_index next = 0, all = pp_program_storages(w->it->program);
  for (uint32_t i = written->graph.items[0].value; i < end; i++) {
    if (written->value.items[i].flags & VALUE_CONSTANT)
      continue;
    pp_index s = 0;
    while (s < all && strcmp(w->name[s], written->value.items[i].name))
      s++;
    if (s == all || next == all)
      return false;
    match[next++] = s;
  }
  return next == all;
}

static pp_status check_written(const struct writer *w, const pp_model *model,
                               const pp_model_rewriting *all, pp_error *error) {
  pp_program *program;
  pp_index storages = pp_program_storages(w->it->program);
  int64_t *peak = pp_zalloc(model->programs, sizeof *peak);
  pp_index *match = pp_alloc((size_t)storages, sizeof *match);
  pp_status status = peak && match ? PP_OK : pp_fail_memory(error);
  if (!status && model->programs != w->onnx->graph.count)
    status = pp_fail(error, PP_ERROR_INTERNAL, "bodies are missing");
  for (size_t i = 1; !status && i < model->programs; i++)
    if (all[i].original)
      status = pp_simulate(all[i].original, all[i].order, peak + i, NULL, NULL, error);
  if (!status && !match_storages(w, model->data, match))
    status = pp_fail(error, PP_ERROR_INTERNAL, "values are missing");
  if (!status && !(status = pp_model_build(model, 0, peak, &program, error))) {
    status = pp_remat_check_written(w->it, program, match, error);
    pp_program_free(program);
  }
  free(peak);
  free(match);
  return status;
}

/* Reads what is about to be written; any difference is our bug. */
static pp_status check_output(const struct writer *w, const pp_model_rewriting *all) {
  pp_error inner;
  pp_model *model = NULL;
  uint8_t *copy = pp_alloc(w->out.size + 1, 1);
  if (!copy)
    return pp_fail_memory(w->error);
  memcpy(copy, w->out.bytes, w->out.size + 1);
  pp_status status =
      pp_model_read_bytes("the written model", copy, w->out.size, NULL, &model, &inner);
  if (!status)
    status = check_written(w, model, all, &inner);
  pp_model_free(model);
  if (!status || status == PP_ERROR_MEMORY)
    return status ? pp_fail_memory(w->error) : PP_OK;
  return pp_fail(w->error, PP_ERROR_INTERNAL, "the written file is not the same model: %.180s",
                 inner.message);
}

/* ---- The whole ---- */

pp_status pp_onnx_write_remat(const pp_model *model, const pp_model_rewriting *rewriting,
                              pp_write *write, void *data, pp_error *error) {
  struct writer w = {.onnx = model->data, .it = rewriting, .error = error};
  uint8_t *bytes = NULL;
  w.graph = w.onnx->graph.items;
  pp_status status = permute_bodies(&w, rewriting, &bytes);
  w.bytes = bytes;
  if (!status && !name_storages(&w))
    status = pp_fail_memory(error);
  if (!status && !(status = put_graph(&w)) && !(status = put_model(&w)))
    status = check_output(&w, rewriting);
  if (!status && !write(w.out.bytes, w.out.size, data))
    status = pp_fail(error, PP_ERROR_IO, "the model could not be written");
  for (size_t i = 0; i < w.made.count; i++)
    free(w.made.items[i]);
  free(w.made.items);
  free(w.name);
  free(w.storage);
  free(w.value);
  free(w.copy);
  free(w.runs);
  free(w.out.bytes);
  free(bytes);
  return status;
}
