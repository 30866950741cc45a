/* Memory snapshots of torch. */
#include "format/snapshot.h"

#include <string.h>
#include <yajl/yajl_tree.h>

#include "error.h"
#include "memory.h"

struct reader {
  int64_t device;
  pp_snapshot *out;
  size_t block_room, event_room;
  int64_t private_pools;
  bool completed; /* the trace says when frees are completed */
  pp_notices *notices;
  pp_error *error;
};

static yajl_val get(yajl_val object, const char *key) {
  const char *path[] = {key, NULL};
  return YAJL_IS_OBJECT(object) ? yajl_tree_get(object, path, yajl_t_any) : NULL;
}

/* A whole number >= 0 of an object; `missing` (if >= 0) stands for one that is not there. */
static pp_status number(struct reader *r, yajl_val object, const char *key, int64_t missing,
                        const char *where, size_t i, int64_t *value) {
  yajl_val v = get(object, key);
  *value = missing;
  if (!v && missing >= 0)
    return PP_OK;
  if (!YAJL_IS_INTEGER(v) || YAJL_GET_INTEGER(v) < 0)
    return pp_fail(r->error, PP_ERROR_INPUT, "%s %zu: \"%s\" is no whole number from 0 to 2^63-1",
                   where, i, key);
  *value = YAJL_GET_INTEGER(v);
  return PP_OK;
}

static pp_status string(struct reader *r, yajl_val object, const char *key, const char *where,
                        size_t i, const char **value) {
  yajl_val v = get(object, key);
  *value = YAJL_GET_STRING(v);
  return *value ? PP_OK
                : pp_fail(r->error, PP_ERROR_INPUT, "%s %zu: \"%s\" is no string", where, i, key);
}

static pp_status array(struct reader *r, yajl_val object, const char *key, const char *where,
                       size_t i, yajl_val *value) {
  *value = get(object, key);
  return YAJL_IS_ARRAY(*value)
             ? PP_OK
             : pp_fail(r->error, PP_ERROR_INPUT, "%s %zu: \"%s\" is no list", where, i, key);
}

/* ---- Segments ---- */

/* A private pool is one whose number is not (0, 0). */
static bool is_private(yajl_val object, const char *key) {
  yajl_val id = get(object, key);
  for (size_t i = 0; YAJL_IS_ARRAY(id) && i < YAJL_GET_ARRAY(id)->len; i++) {
    yajl_val part = YAJL_GET_ARRAY(id)->values[i];
    if (!YAJL_IS_INTEGER(part) || YAJL_GET_INTEGER(part) != 0)
      return true;
  }
  return false;
}

static pp_status read_block(struct reader *r, yajl_val from, size_t i, int64_t address,
                            pp_caching_block block) {
  const char *state;
  int64_t stands, requested;
  pp_status status = number(r, from, "size", -1, "block", i, &block.bytes);
  if (!status)
    status = number(r, from, "address", address, "block", i, &stands);
  if (!status)
    status = string(r, from, "state", "block", i, &state);
  if (!status)
    status = number(r, from, "requested_size", 0, "block", i, &requested);
  if (status)
    return status;
  if (stands != address)
    return pp_fail(r->error, PP_ERROR_INPUT, "block %zu does not stand behind the one before", i);
  /* What waits for another stream is not free yet. */
  block.allocated = strcmp(state, "inactive") != 0;
  block.requested = block.allocated ? requested : 0;
  block.address = address;
  pp_snapshot *out = r->out;
  if (!pp_reserve((void **)&out->block, &r->block_room, out->blocks + 1, sizeof *out->block))
    return pp_fail_memory(r->error);
  out->block[out->blocks++] = block;
  return PP_OK;
}

static pp_status read_blocks(struct reader *r, yajl_val segment, size_t i, int64_t address,
                             int64_t total, pp_caching_block block) {
  yajl_val blocks;
  pp_status status = array(r, segment, "blocks", "segment", i, &blocks);
  int64_t end = address;
  for (size_t k = 0; !status && k < YAJL_GET_ARRAY(blocks)->len; k++) {
    block.first = k == 0;
    status = read_block(r, YAJL_GET_ARRAY(blocks)->values[k], r->out->blocks, end, block);
    if (!status && __builtin_add_overflow(end, r->out->block[r->out->blocks - 1].bytes, &end))
      status = pp_fail(r->error, PP_ERROR_OVERFLOW, "segment %zu is too large", i);
  }
  if (!status && end - address != total)
    return pp_fail(r->error, PP_ERROR_INPUT, "segment %zu: its blocks are not its total_size", i);
  return status;
}

static pp_status read_segment(struct reader *r, yajl_val segment, size_t i) {
  const char *type;
  int64_t device, address, total;
  pp_caching_block block = {0};
  pp_status status = number(r, segment, "device", 0, "segment", i, &device);
  if (status || device != r->device)
    return status;
  status = number(r, segment, "total_size", -1, "segment", i, &total);
  if (!status && is_private(segment, "segment_pool_id")) {
    r->private_pools++;
    if (__builtin_add_overflow(r->out->private_bytes, total, &r->out->private_bytes))
      return pp_fail(r->error, PP_ERROR_OVERFLOW, "the private pools are too large");
    return PP_OK;
  }
  if (!status)
    status = number(r, segment, "address", -1, "segment", i, &address);
  if (!status)
    status = number(r, segment, "stream", 0, "segment", i, &block.stream);
  if (!status)
    status = string(r, segment, "segment_type", "segment", i, &type);
  if (status)
    return status;
  block.small = !strcmp(type, "small");
  block.expandable = YAJL_IS_TRUE(get(segment, "is_expandable"));
  return read_blocks(r, segment, i, address, total, block);
}

static int by_address(const void *a, const void *b) {
  int64_t x = ((const pp_caching_block *)a)->address, y = ((const pp_caching_block *)b)->address;
  return (x > y) - (x < y);
}

static pp_status read_segments(struct reader *r, yajl_val root) {
  yajl_val segments;
  pp_status status = array(r, root, "segments", "snapshot", 0, &segments);
  for (size_t i = 0; !status && i < YAJL_GET_ARRAY(segments)->len; i++)
    status = read_segment(r, YAJL_GET_ARRAY(segments)->values[i], i);
  if (!status && r->out->blocks) /* a block of 0 bytes is refused later: no ties */
    qsort(r->out->block, r->out->blocks, sizeof *r->out->block, by_address);
  if (!status && r->private_pools && r->notices)
    pp_notices_add(r->notices, "%lld segments of private pools (CUDA graphs) are left out",
                   (long long)r->private_pools);
  return status;
}

/* ---- Traces ---- */

/* Entries that are not about memory of ours are left out: *used is then false. */
static pp_status read_action(struct reader *r, const char *action, pp_caching_event *event,
                             bool *used) {
  static const struct {
    const char *name;
    pp_caching_event_kind kind;
    pp_caching_action action;
  } actions[] = {{"alloc", PP_EVENT_ALLOC, 0},
                 {"oom", PP_EVENT_FULL, 0},
                 {"segment_alloc", PP_EVENT_SEGMENT, PP_SEGMENT_ALLOC},
                 {"segment_free", PP_EVENT_SEGMENT, PP_SEGMENT_FREE},
                 {"segment_map", PP_EVENT_SEGMENT, PP_SEGMENT_MAP},
                 {"segment_unmap", PP_EVENT_SEGMENT, PP_SEGMENT_UNMAP}};
  *used = !strcmp(action, r->completed ? "free_completed" : "free_requested");
  event->kind = PP_EVENT_FREE;
  for (size_t i = 0; i < sizeof actions / sizeof *actions; i++)
    if (!strcmp(action, actions[i].name)) {
      event->kind = actions[i].kind;
      event->action = actions[i].action;
      *used = true;
    }
  return PP_OK;
}

static pp_status read_event(struct reader *r, yajl_val entry, size_t i) {
  const char *action;
  pp_caching_event event = {0};
  bool used;
  pp_status status = string(r, entry, "action", "trace entry", i, &action);
  if (!status)
    status = read_action(r, action, &event, &used);
  if (status || !used || is_private(entry, "pool_id") || is_private(entry, "segment_pool_id"))
    return status;
  status = number(r, entry, "addr", event.kind == PP_EVENT_FULL ? 0 : -1, "trace entry", i,
                  &event.address);
  if (!status)
    status = number(r, entry, "size", -1, "trace entry", i, &event.bytes);
  if (!status)
    status = number(r, entry, "stream", 0, "trace entry", i, &event.stream);
  if (!status && !pp_reserve((void **)&r->out->event, &r->event_room, r->out->events + 1,
                             sizeof *r->out->event))
    status = pp_fail_memory(r->error);
  if (!status)
    r->out->event[r->out->events++] = event;
  return status;
}

static pp_status read_trace(struct reader *r, yajl_val root) {
  yajl_val traces = get(root, "device_traces");
  if (!traces)
    return PP_OK;
  if (!YAJL_IS_ARRAY(traces))
    return pp_fail(r->error, PP_ERROR_INPUT, "\"device_traces\" is no list");
  if ((uint64_t)r->device >= YAJL_GET_ARRAY(traces)->len)
    return PP_OK;
  yajl_val trace = YAJL_GET_ARRAY(traces)->values[r->device];
  if (!YAJL_IS_ARRAY(trace))
    return pp_fail(r->error, PP_ERROR_INPUT, "device_traces[%lld] is no list",
                   (long long)r->device);
  for (size_t i = 0; i < YAJL_GET_ARRAY(trace)->len; i++) {
    const char *action = YAJL_GET_STRING(get(YAJL_GET_ARRAY(trace)->values[i], "action"));
    r->completed = r->completed || (action && !strcmp(action, "free_completed"));
  }
  pp_status status = PP_OK;
  for (size_t i = 0; !status && i < YAJL_GET_ARRAY(trace)->len; i++)
    status = read_event(r, YAJL_GET_ARRAY(trace)->values[i], i);
  return status;
}

/* ---- All ---- */

static pp_status read_settings(struct reader *r, yajl_val root) {
  yajl_val settings = get(root, "allocator_settings");
  static const char *const keys[] = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys && !r->out->settings; i++) {
    const char *text = YAJL_GET_STRING(get(settings, keys[i]));
    if (text && !(r->out->settings = strdup(text)))
      return pp_fail_memory(r->error);
  }
  return PP_OK;
}

/* yajl frees its tree by recursion. */
static bool is_deep(const uint8_t *bytes) {
  int depth = 0;
  bool quoted = false;
  for (; *bytes; bytes++) {
    if (*bytes == '"')
      quoted = !quoted;
    else if (quoted && *bytes == '\\' && bytes[1])
      bytes++;
    else if (!quoted && (*bytes == '[' || *bytes == '{') && ++depth > 100)
      return true;
    else if (!quoted && (*bytes == ']' || *bytes == '}'))
      depth--;
  }
  return false;
}

static yajl_val parse(const uint8_t *bytes, size_t size, pp_error *error) {
  char message[200];
  yajl_val root = NULL;
  if (strlen((const char *)bytes) != size)
    pp_fail(error, PP_ERROR_INPUT, "a byte 0 in the text");
  else if (is_deep(bytes))
    pp_fail(error, PP_ERROR_INPUT, "lists or objects are nested more than 100 deep");
  else if (!(root = yajl_tree_parse((const char *)bytes, message, sizeof message))) {
    message[strcspn(message, "\n")] = 0;
    pp_fail(error, PP_ERROR_INPUT, "not JSON: %.180s", message);
  }
  return root;
}

pp_status pp_snapshot_read(const uint8_t *bytes, size_t size, int64_t device, pp_snapshot *snapshot,
                           pp_notices *notices, pp_error *error) {
  *snapshot = (pp_snapshot){0};
  struct reader r = {.device = device, .out = snapshot, .notices = notices, .error = error};
  yajl_val root = parse(bytes, size, error);
  if (!root)
    return PP_ERROR_INPUT;
  pp_status status = YAJL_IS_OBJECT(root)
                         ? PP_OK
                         : pp_fail(error, PP_ERROR_INPUT, "a snapshot is an object with segments");
  if (!status)
    status = read_settings(&r, root);
  if (!status)
    status = read_segments(&r, root);
  if (!status)
    status = read_trace(&r, root);
  yajl_tree_free(root);
  if (status)
    pp_snapshot_free(snapshot);
  return status;
}

void pp_snapshot_free(pp_snapshot *snapshot) {
  free(snapshot->block);
  free(snapshot->event);
  free(snapshot->settings);
  *snapshot = (pp_snapshot){0};
}
