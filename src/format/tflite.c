/* Reads .tflite files into models. The file is verified as a whole (tflite_schema.c), then its
 * tensors, operators, state and metadata are read; TFLITE.md section 1 has the rules. */
#include "format/tflite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tflite_model.h"
#include "format/tflite_schema.h"

/* ---- The file as a whole ---- */

static pp_status check_header(const pp_flat *flat, pp_error *error) {
  if (flat->size < 8)
    return pp_fail_at(error, PP_ERROR_INPUT, 0, "%zu bytes are no .tflite file", flat->size);
  if (memcmp(flat->bytes + 4, "TFL3", 4) != 0)
    return pp_fail_at(error, PP_ERROR_INPUT, 4, "no .tflite file: TFL3 is missing");
  return PP_OK;
}

static pp_status read_root(pp_tflite *tflite, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  tflite->root = pp_flat_target(flat, 0);
  uint32_t version = pp_flat_get32(flat, tflite->root, MODEL_VERSION, 0);
  if (version != 3)
    return pp_fail_at(error, PP_ERROR_INPUT, tflite->root,
                      "schema version %" PRIu32 " instead of 3", version);
  tflite->buffers = pp_flat_elements(flat, tflite->root, MODEL_BUFFERS);
  if (!tflite->buffers.count)
    return pp_fail_at(error, PP_ERROR_INPUT, tflite->root, "buffer 0 is missing");
  tflite->subgraphs = pp_flat_elements(flat, tflite->root, MODEL_SUBGRAPHS).count;
  if (!tflite->subgraphs)
    return pp_fail_at(error, PP_ERROR_INPUT, tflite->root, "the model has no subgraph");
  tflite->codes = pp_flat_elements(flat, tflite->root, MODEL_CODES).count;
  tflite->metadata = pp_flat_elements(flat, tflite->root, MODEL_METADATA);
  return PP_OK;
}

static pp_status read_codes(pp_tflite *tflite, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  pp_flat_vector codes = pp_flat_elements(flat, tflite->root, MODEL_CODES);
  tflite->code = pp_zalloc(tflite->codes, sizeof *tflite->code);
  if (!tflite->code)
    return pp_fail_memory(error);
  for (uint32_t i = 0; i < tflite->codes; i++) {
    size_t table = pp_tflite_at(tflite, codes, i);
    /* Files before schema 3a have the byte alone, later ones both: the larger one holds. */
    int32_t old = (int8_t)pp_flat_get8(flat, table, CODE_DEPRECATED, 0);
    int32_t now = (int32_t)pp_flat_get32(flat, table, CODE_BUILTIN, 0);
    tflite->code[i].builtin = old > now ? old : now;
    tflite->code[i].custom = pp_flat_elements(flat, table, CODE_CUSTOM);
  }
  return PP_OK;
}

static void note_codes(const pp_tflite *tflite, pp_notices *notices) {
  for (uint32_t i = 0; i < tflite->codes; i++)
    if (!pp_tflite_operator_known(tflite->code[i].builtin)) {
      pp_notices_add(notices,
                     "operators of kind %" PRId32 " are newer than this version: they keep their "
                     "order among stateful ones",
                     tflite->code[i].builtin);
      return; /* one will do */
    }
}

static pp_status read_subgraphs(pp_tflite *tflite, const pp_claims *claims, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  pp_flat_vector tables = pp_flat_elements(flat, tflite->root, MODEL_SUBGRAPHS);
  tflite->subgraph = pp_zalloc(tflite->subgraphs, sizeof *tflite->subgraph);
  if (!tflite->subgraph)
    return pp_fail_memory(error);
  uint64_t tensors = 0;
  for (uint32_t i = 0; i < tflite->subgraphs; i++) {
    pp_tflite_subgraph *subgraph = tflite->subgraph + i;
    subgraph->table = pp_tflite_at(tflite, tables, i);
    subgraph->tensors = pp_flat_elements(flat, subgraph->table, SUBGRAPH_TENSORS);
    subgraph->inputs = pp_flat_elements(flat, subgraph->table, SUBGRAPH_INPUTS);
    subgraph->outputs = pp_flat_elements(flat, subgraph->table, SUBGRAPH_OUTPUTS);
    subgraph->operators = pp_flat_elements(flat, subgraph->table, SUBGRAPH_OPERATORS);
    subgraph->name = pp_flat_elements(flat, subgraph->table, SUBGRAPH_NAME);
    subgraph->tensor = (uint32_t)tensors;
    subgraph->shared =
        pp_claims_shared(claims, subgraph->table) ||
        (subgraph->operators.at && pp_claims_shared(claims, subgraph->operators.at - 4));
    tensors += subgraph->tensors.count;
    /* Tokens (tflite_state.c) number subgraphs, resources and tensors in 32 bits. */
    if (tensors > INT32_MAX || subgraph->operators.count > INT32_MAX - 1)
      return pp_fail_at(error, PP_ERROR_OVERFLOW, subgraph->table,
                        "more than 2^31-1 tensors or operators");
  }
  tflite->tensors = (uint32_t)tensors;
  tflite->kind = pp_zalloc(tflite->tensors, sizeof *tflite->kind);
  tflite->bytes = pp_zalloc(tflite->tensors, sizeof *tflite->bytes);
  tflite->resource = pp_zalloc(tflite->tensors, sizeof *tflite->resource);
  return tflite->kind && tflite->bytes && tflite->resource ? PP_OK : pp_fail_memory(error);
}

/* Data that lies behind the FlatBuffer, at offsets from the beginning of the file. */
static pp_status claim_outside(pp_tflite *tflite, size_t table, unsigned offset, unsigned size,
                               pp_claims *claims, pp_error *error) {
  uint64_t from = pp_flat_get64(&tflite->flat, table, offset, 0);
  uint64_t bytes = pp_flat_get64(&tflite->flat, table, size, 0);
  if (from <= 1 || !bytes)
    return PP_OK;
  if (from > tflite->flat.size || bytes > tflite->flat.size - from)
    return pp_fail_at(error, PP_ERROR_INPUT, table,
                      "%" PRIu64 " bytes of data at byte %" PRIu64 " leave the file", bytes, from);
  return pp_claims_add_outside(claims, from, bytes) ? pp_fail_memory(error) : PP_OK;
}

static pp_status claim_all_outside(pp_tflite *tflite, pp_claims *claims, pp_error *error) {
  pp_status status = PP_OK;
  pp_flat_vector subgraphs = pp_flat_elements(&tflite->flat, tflite->root, MODEL_SUBGRAPHS);
  for (uint32_t i = 0; i < tflite->buffers.count && !status; i++)
    status = claim_outside(tflite, pp_tflite_at(tflite, tflite->buffers, i), BUFFER_OFFSET,
                           BUFFER_SIZE, claims, error);
  for (uint32_t s = 0; s < tflite->subgraphs && !status; s++) {
    size_t table = pp_tflite_at(tflite, subgraphs, s);
    pp_flat_vector operators = pp_flat_elements(&tflite->flat, table, SUBGRAPH_OPERATORS);
    for (uint32_t i = 0; i < operators.count && !status; i++)
      status = claim_outside(tflite, pp_tflite_at(tflite, operators, i), OPERATOR_LARGE_OFFSET,
                             OPERATOR_LARGE_SIZE, claims, error);
  }
  return status;
}

/* Verifies the structure; claims says afterwards which objects are shared. */
static pp_status read_structure(pp_tflite *tflite, pp_claims *claims, pp_error *error) {
  size_t at = 0;
  if (pp_claims_add(claims, 0, 8)) /* the header */
    return pp_fail_memory(error);
  pp_status status = pp_tflite_verify(&tflite->flat, 0, claims, error);
  if (status || (status = read_root(tflite, error)) ||
      (status = claim_all_outside(tflite, claims, error)))
    return status;
  if (pp_claims_finish(claims, &at))
    return pp_fail_at(error, PP_ERROR_INPUT, at, "data overlaps another object");
  return PP_OK;
}

/* ---- Indices ---- */

/* `what` of subgraph s (and of operator `index`, unless it is UINT32_MAX) are tensors of it. */
static pp_status check_tensors(const pp_tflite *tflite, uint32_t s, uint32_t index,
                               pp_flat_vector list, const char *what, pp_error *error) {
  uint32_t tensors = tflite->subgraph[s].tensors.count;
  for (uint32_t i = 0; i < list.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, list, i);
    if (tensor >= -1 && (tensor < 0 || (uint32_t)tensor < tensors))
      continue;
    size_t at = list.at + 4 * (size_t)i;
    if (index == UINT32_MAX)
      return pp_fail_at(error, PP_ERROR_INPUT, at,
                        "%s %" PRIu32 " of subgraph %" PRIu32 " is tensor %" PRId32
                        ", which does not exist",
                        what, i, s, tensor);
    return pp_fail_at(error, PP_ERROR_INPUT, at,
                      "%s %" PRIu32 " of operator %" PRIu32 " of subgraph %" PRIu32
                      " is tensor %" PRId32 ", which does not exist",
                      what, i, index, s, tensor);
  }
  return PP_OK;
}

static pp_status check_operator(const pp_tflite *tflite, uint32_t s, uint32_t index,
                                pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  size_t table = pp_tflite_at(tflite, tflite->subgraph[s].operators, index);
  uint32_t code = pp_flat_get32(flat, table, OPERATOR_CODE, 0);
  if (code >= tflite->codes)
    return pp_fail_at(error, PP_ERROR_INPUT, table,
                      "operator %" PRIu32 " of subgraph %" PRIu32 " has code %" PRIu32
                      ", which does not exist",
                      index, s, code);
  static const struct {
    unsigned field;
    const char *what;
  } lists[] = {{OPERATOR_INPUTS, "input"},
               {OPERATOR_OUTPUTS, "output"},
               {OPERATOR_INTERMEDIATES, "intermediate"}};
  pp_status status = PP_OK;
  for (int i = 0; i < 3 && !status; i++)
    status = check_tensors(tflite, s, index, pp_flat_elements(flat, table, lists[i].field),
                           lists[i].what, error);
  return status;
}

static pp_status check_indices(const pp_tflite *tflite, pp_error *error) {
  for (uint32_t s = 0; s < tflite->subgraphs; s++) {
    const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
    pp_status status = check_tensors(tflite, s, UINT32_MAX, subgraph->inputs, "input", error);
    if (!status)
      status = check_tensors(tflite, s, UINT32_MAX, subgraph->outputs, "output", error);
    for (uint32_t i = 0; i < subgraph->operators.count && !status; i++)
      status = check_operator(tflite, s, i, error);
    if (status)
      return status;
  }
  return PP_OK;
}

static pp_status check_map(const pp_tflite *tflite, uint32_t signature, uint32_t tensors,
                           pp_flat_vector map, pp_error *error) {
  for (uint32_t i = 0; i < map.count; i++) {
    size_t entry = pp_tflite_at(tflite, map, i);
    uint32_t tensor = pp_flat_get32(&tflite->flat, entry, TENSOR_MAP_TENSOR, 0);
    if (tensor >= tensors)
      return pp_fail_at(error, PP_ERROR_INPUT, entry,
                        "signature %" PRIu32 " names tensor %" PRIu32 ", which does not exist",
                        signature, tensor);
  }
  return PP_OK;
}

static pp_status check_signatures(const pp_tflite *tflite, pp_error *error) {
  const pp_flat *flat = &tflite->flat;
  pp_flat_vector signatures = pp_flat_elements(flat, tflite->root, MODEL_SIGNATURES);
  for (uint32_t i = 0; i < signatures.count; i++) {
    size_t table = pp_tflite_at(tflite, signatures, i);
    uint32_t s = pp_flat_get32(flat, table, SIGNATURE_SUBGRAPH, 0);
    if (s >= tflite->subgraphs)
      return pp_fail_at(error, PP_ERROR_INPUT, table,
                        "signature %" PRIu32 " is of subgraph %" PRIu32 ", which does not exist", i,
                        s);
    uint32_t tensors = tflite->subgraph[s].tensors.count;
    pp_status status =
        check_map(tflite, i, tensors, pp_flat_elements(flat, table, SIGNATURE_INPUTS), error);
    if (!status)
      status =
          check_map(tflite, i, tensors, pp_flat_elements(flat, table, SIGNATURE_OUTPUTS), error);
    if (status)
      return status;
  }
  return PP_OK;
}

/* ---- Data flow ---- */

/* Every arena tensor is produced once, and read only after that. An empty tensor needs no
 * producer: converters leave empty constants without data. */
static pp_status check_reads(const pp_tflite *tflite, uint32_t s, uint32_t index,
                             pp_flat_vector inputs, const uint8_t *made, pp_error *error) {
  uint32_t base = tflite->subgraph[s].tensor;
  for (uint32_t i = 0; i < inputs.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, inputs, i);
    if (tensor < 0 || made[tensor] || tflite->kind[base + (uint32_t)tensor] != TENSOR_ARENA)
      continue;
    if (pp_tflite_is_empty(tflite, s, (uint32_t)tensor))
      continue;
    return pp_fail_at(error, PP_ERROR_INPUT, inputs.at + 4 * (size_t)i,
                      "operator %" PRIu32 " of subgraph %" PRIu32 " reads tensor %" PRId32
                      " before anything has produced it",
                      index, s, tensor);
  }
  return PP_OK;
}

static pp_status check_writes(const pp_tflite *tflite, uint32_t s, uint32_t index,
                              pp_flat_vector outputs, uint8_t *made, pp_error *error) {
  uint32_t base = tflite->subgraph[s].tensor;
  for (uint32_t i = 0; i < outputs.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, outputs, i);
    if (tensor < 0 || tflite->kind[base + (uint32_t)tensor] == TENSOR_STATE)
      continue;
    bool constant = tflite->kind[base + (uint32_t)tensor] == TENSOR_CONSTANT;
    if (constant || made[tensor])
      return pp_fail_at(error, PP_ERROR_INPUT, outputs.at + 4 * (size_t)i,
                        "operator %" PRIu32 " of subgraph %" PRIu32 " writes tensor %" PRId32
                        ", which %s",
                        index, s, tensor,
                        constant           ? "is constant"
                        : made[tensor] > 1 ? "is an input of the subgraph"
                                           : "was written before");
    made[tensor] = 1;
  }
  return PP_OK;
}

static pp_status check_flow(const pp_tflite *tflite, uint32_t s, uint8_t *made, pp_error *error) {
  const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
  memset(made, 0, subgraph->tensors.count);
  for (uint32_t i = 0; i < subgraph->inputs.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, subgraph->inputs, i);
    if (tensor >= 0)
      made[tensor] = 2;
  }
  pp_status status = PP_OK;
  for (uint32_t i = 0; i < subgraph->operators.count && !status; i++) {
    size_t table = pp_tflite_at(tflite, subgraph->operators, i);
    pp_flat_vector inputs = pp_flat_elements(&tflite->flat, table, OPERATOR_INPUTS);
    pp_flat_vector outputs = pp_flat_elements(&tflite->flat, table, OPERATOR_OUTPUTS);
    status = check_reads(tflite, s, i, inputs, made, error);
    if (!status)
      status = check_writes(tflite, s, i, outputs, made, error);
  }
  return status;
}

static void note_outputs(const pp_tflite *tflite, uint32_t s, const uint8_t *made,
                         pp_notices *notices) {
  const pp_tflite_subgraph *subgraph = tflite->subgraph + s;
  uint32_t count = 0;
  int32_t first = -1;
  for (uint32_t i = 0; i < subgraph->outputs.count; i++) {
    int32_t tensor = pp_tflite_int(tflite, subgraph->outputs, i);
    if (tensor >= 0 && !made[tensor] &&
        tflite->kind[subgraph->tensor + (uint32_t)tensor] == TENSOR_ARENA && !count++)
      first = tensor;
  }
  if (count)
    pp_notices_add(notices,
                   "subgraph %" PRIu32 ": %" PRIu32 " output%s that nothing produces (first: "
                   "tensor %" PRId32 ")",
                   s, count, count == 1 ? "" : "s", first);
}

static pp_status check_flows(const pp_tflite *tflite, pp_notices *notices, pp_error *error) {
  uint8_t *made = pp_alloc(tflite->tensors, 1);
  if (!made)
    return pp_fail_memory(error);
  pp_status status = PP_OK;
  for (uint32_t s = 0; s < tflite->subgraphs && !status; s++) {
    status = check_flow(tflite, s, made, error);
    if (!status)
      note_outputs(tflite, s, made, notices);
  }
  free(made);
  return status;
}

/* ---- Names ---- */

enum { NAME_MAX_LENGTH = 100 };

/* The subgraph's name made fit for a file; subgraphN without one. */
static char *file_name(const pp_tflite *tflite, uint32_t s, bool plain) {
  char *name = pp_zalloc(NAME_MAX_LENGTH + 1, 1);
  if (!name)
    return NULL;
  pp_flat_vector text = tflite->subgraph[s].name;
  size_t length = text.count < NAME_MAX_LENGTH ? text.count : NAME_MAX_LENGTH;
  for (size_t i = 0; i < length && !plain; i++) {
    char c = (char)tflite->flat.bytes[text.at + i];
    bool fit = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || (c == '.' && i);
    name[i] = fit ? c : '_';
  }
  if (plain || !length)
    snprintf(name, NAME_MAX_LENGTH + 1, "subgraph%" PRIu32, s);
  return name;
}

static int compare_strings(const void *a, const void *b) {
  return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool unique(char *const *names, size_t count, char **sorted) {
  memcpy(sorted, names, count * sizeof *names);
  qsort(sorted, count, sizeof *sorted, compare_strings);
  for (size_t i = 1; i < count; i++)
    if (!strcmp(sorted[i - 1], sorted[i]))
      return false;
  return true;
}

/* Names are the subgraphs' own if these differ, else subgraph0, subgraph1, ... */
static pp_status name_programs(pp_model *model, const pp_tflite *tflite, pp_error *error) {
  char **sorted = pp_alloc(model->programs, sizeof *sorted);
  bool plain = false, good = sorted;
  for (int round = 0; round < 2 && good; round++, plain = true) {
    for (size_t i = 0; i < model->programs && good; i++) {
      free(model->name[i]);
      good = (model->name[i] = file_name(tflite, (uint32_t)i, plain));
    }
    if (good && unique(model->name, model->programs, sorted))
      break;
  }
  free(sorted);
  return good ? PP_OK : pp_fail_memory(error);
}

/* ---- Operations ---- */

static void free_tflite(pp_model *model) {
  pp_tflite *tflite = model->data;
  if (!tflite)
    return;
  free(tflite->code);
  free(tflite->subgraph);
  free(tflite->kind);
  free(tflite->bytes);
  free(tflite->resource);
  free(tflite->edge.items);
  free(tflite);
  model->data = NULL;
}

static const struct pp_model_operations operations = {
    .build = pp_tflite_build, .write = pp_tflite_write, .free = free_tflite};

static pp_status read_all(pp_model *model, pp_tflite *tflite, pp_claims *claims, pp_error *error) {
  pp_status status;
  if ((status = read_structure(tflite, claims, error)) || (status = read_codes(tflite, error)) ||
      (status = read_subgraphs(tflite, claims, error)) ||
      (status = pp_tflite_read_tensors(tflite, &model->notices, error)) ||
      (status = check_indices(tflite, error)) || (status = check_signatures(tflite, error)) ||
      (status = check_flows(tflite, &model->notices, error)))
    return status;
  note_codes(tflite, &model->notices);
  model->name = pp_zalloc(tflite->subgraphs, sizeof *model->name);
  model->sequence = pp_zalloc(tflite->subgraphs, sizeof *model->sequence);
  if (!model->name || !model->sequence)
    return pp_fail_memory(error);
  model->programs = tflite->subgraphs;
  if ((status = name_programs(model, tflite, error)) ||
      (status = pp_tflite_read_state(tflite, model->sequence, error)))
    return status;
  return pp_tflite_read_metadata(tflite, claims, &model->notices, error);
}

pp_status pp_tflite_read(pp_model *model, const pp_read_options *options, pp_error *error) {
  (void)options; /* shapes are the file's */
  model->format = PP_FORMAT_TFLITE;
  model->operations = &operations;
  pp_tflite *tflite = model->data = pp_zalloc(1, sizeof *tflite);
  if (!tflite)
    return pp_fail_memory(error);
  tflite->flat = (pp_flat){model->bytes, model->size};
  pp_status status = check_header(&tflite->flat, error);
  if (status)
    return status;
  pp_claims claims;
  if (pp_claims_begin(&claims, model->size))
    status = read_all(model, tflite, &claims, error);
  else
    status = pp_fail_memory(error);
  pp_claims_end(&claims);
  return status;
}
