/* Inductor's memory simulator JSON (torch._inductor.memory.export_graph_for_simulator) as a model
 * of one program: nodes are statements, buffers are storages.
 *
 * A buffer comes into being with the node that makes it (inputs: before the first) and ends with
 * the last node that depends on it. An operator with several outputs is written as a parent, which
 * allocates for all and frees nothing, and children, which free and do not allocate: a child's
 * storage begins with its parent's node. */
#include "format/simulator.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "error.h"
#include "memory.h"

enum { NONE = -1 };

struct node {
  char *name;
  size_t first, count; /* the buffers that it makes: .made */
};

struct buffer {
  char *name;
  int64_t allocated, freed;
  bool input, output;
  size_t first, count; /* what it is made from: .dep */
  pp_index maker;      /* node, or NONE */
  pp_index parent;     /* of a child: the buffer that is allocated for it; or NONE */
  int64_t rest;        /* of a parent: what no child frees */
};

struct name {
  char *text;
  pp_index buffer; /* or NONE: not in the list */
};

struct simulator {
  PP_VECTOR(struct node) node;
  PP_VECTOR(struct buffer) buffer;
  PP_VECTOR(struct name) made;
  PP_VECTOR(struct name) dep;
};

/* ---- Parsing ---- */

enum where { OUTSIDE, ROOT, NODES, NODE, MADE, BUFFERS, BUFFER, DEPS, AT_END };
enum key {
  KEY_NONE,
  KEY_NODES,
  KEY_BUFFERS,
  KEY_NAME,
  KEY_MADE,
  KEY_DEPS,
  KEY_ALLOC,
  KEY_FREE,
  KEY_INPUT,
  KEY_OUTPUT
};

static const struct {
  enum where where;
  const char *name;
  enum key key;
} keys[] = {
    {ROOT, "nodes", KEY_NODES},        {ROOT, "buffers", KEY_BUFFERS},
    {NODE, "name", KEY_NAME},          {NODE, "buffer_names", KEY_MADE},
    {BUFFER, "name", KEY_NAME},        {BUFFER, "deps", KEY_DEPS},
    {BUFFER, "size_alloc", KEY_ALLOC}, {BUFFER, "size_free", KEY_FREE},
    {BUFFER, "is_input", KEY_INPUT},   {BUFFER, "is_output", KEY_OUTPUT},
};

struct parser {
  struct simulator *simulator;
  enum where where;
  enum key key;
  unsigned seen; /* keys of the object at hand; of the root in root_seen */
  unsigned root_seen;
  size_t skip; /* depth inside a value that is not looked at */
  pp_error *error;
  pp_status status;
};

/* Returns 0, which makes yajl stop. */
__attribute__((format(printf, 2, 3))) static int wrong(struct parser *parser, const char *format,
                                                       ...) {
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  parser->status = pp_fail(parser->error, PP_ERROR_INPUT, "%s", text);
  return 0;
}

static int out_of_memory(struct parser *parser) {
  parser->status = pp_fail_memory(parser->error);
  return 0;
}

static char *copy_text(const unsigned char *text, size_t size) {
  char *copy = malloc(size + 1);
  if (copy) {
    memcpy(copy, text, size);
    copy[size] = 0;
  }
  return copy;
}

static int begin_node(struct parser *parser) {
  struct simulator *simulator = parser->simulator;
  parser->where = NODE;
  parser->seen = 0;
  if (!PP_ROOM(&simulator->node))
    return out_of_memory(parser);
  simulator->node.items[simulator->node.count++] = (struct node){.first = simulator->made.count};
  return 1;
}

static int begin_buffer(struct parser *parser) {
  struct simulator *simulator = parser->simulator;
  parser->where = BUFFER;
  parser->seen = 0;
  if (!PP_ROOM(&simulator->buffer))
    return out_of_memory(parser);
  simulator->buffer.items[simulator->buffer.count++] = (struct buffer){
      .allocated = -1, .freed = -1, .first = simulator->dep.count, .maker = NONE, .parent = NONE};
  return 1;
}

static int begin_object(void *data) {
  struct parser *parser = data;
  bool object = parser->where == ROOT || parser->where == NODE || parser->where == BUFFER;
  if (parser->skip || (object && parser->key == KEY_NONE)) {
    parser->skip++;
    return 1;
  }
  if (parser->where == NODES)
    return begin_node(parser);
  if (parser->where == BUFFERS)
    return begin_buffer(parser);
  if (parser->where != OUTSIDE)
    return wrong(parser, "an object where none belongs");
  parser->where = ROOT;
  return 1;
}

static int map_key(void *data, const unsigned char *text, size_t size) {
  struct parser *parser = data;
  if (parser->skip)
    return 1;
  parser->key = KEY_NONE;
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (keys[i].where == parser->where && strlen(keys[i].name) == size &&
        !memcmp(keys[i].name, text, size))
      parser->key = keys[i].key;
  unsigned *seen = parser->where == ROOT ? &parser->root_seen : &parser->seen;
  if (parser->key && *seen & 1u << parser->key)
    return wrong(parser, "the key \"%.*s\" is given twice", (int)size, (const char *)text);
  *seen |= 1u << parser->key;
  return 1;
}

static int require(struct parser *parser, const char *what, unsigned wanted) {
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (keys[i].where == parser->where && wanted & 1u << keys[i].key &&
        !(parser->seen & 1u << keys[i].key))
      return wrong(parser, "%s has no \"%s\"", what, keys[i].name);
  return 1;
}

static int end_object(void *data) {
  struct parser *parser = data;
  if (parser->skip) {
    parser->skip--;
    return 1;
  }
  parser->key = KEY_NONE;
  if (parser->where == NODE) {
    if (!require(parser, "a node", 1u << KEY_NAME | 1u << KEY_MADE))
      return 0;
    parser->where = NODES;
  } else if (parser->where == BUFFER) {
    if (!require(parser, "a buffer",
                 1u << KEY_NAME | 1u << KEY_DEPS | 1u << KEY_ALLOC | 1u << KEY_FREE |
                     1u << KEY_INPUT | 1u << KEY_OUTPUT))
      return 0;
    parser->where = BUFFERS;
  } else {
    parser->seen = parser->root_seen;
    if (!require(parser, "the graph", 1u << KEY_NODES | 1u << KEY_BUFFERS))
      return 0;
    parser->where = AT_END;
  }
  return 1;
}

static int begin_array(void *data) {
  struct parser *parser = data;
  static const enum where inside[] = {[KEY_NODES] = NODES,
                                      [KEY_BUFFERS] = BUFFERS,
                                      [KEY_MADE] = MADE,
                                      [KEY_DEPS] = DEPS,
                                      [KEY_OUTPUT] = 0};
  bool list = parser->where == ROOT || parser->where == NODE || parser->where == BUFFER;
  if (parser->skip || (list && parser->key == KEY_NONE)) {
    parser->skip++;
    return 1;
  }
  if (!list || !inside[parser->key])
    return wrong(parser, "a list where none belongs");
  parser->where = inside[parser->key];
  parser->key = KEY_NONE;
  return 1;
}

static int end_array(void *data) {
  struct parser *parser = data;
  if (parser->skip)
    parser->skip--;
  else if (parser->where == MADE)
    parser->where = NODE;
  else if (parser->where == DEPS)
    parser->where = BUFFER;
  else
    parser->where = ROOT;
  return 1;
}

static int add_name(struct parser *parser, char *text) {
  struct simulator *simulator = parser->simulator;
  bool made = parser->where == MADE;
  if (!text || !(made ? PP_ROOM(&simulator->made) : PP_ROOM(&simulator->dep))) {
    free(text);
    return out_of_memory(parser);
  }
  if (made) {
    simulator->made.items[simulator->made.count++] = (struct name){text, NONE};
    simulator->node.items[simulator->node.count - 1].count++;
  } else {
    simulator->dep.items[simulator->dep.count++] = (struct name){text, NONE};
    simulator->buffer.items[simulator->buffer.count - 1].count++;
  }
  return 1;
}

static int on_string(void *data, const unsigned char *text, size_t size) {
  struct parser *parser = data;
  struct simulator *simulator = parser->simulator;
  bool list = parser->where == MADE || parser->where == DEPS;
  if (parser->skip || (!list && parser->where >= ROOT && parser->key == KEY_NONE &&
                       parser->where != NODES && parser->where != BUFFERS))
    return 1;
  if (memchr(text, 0, size))
    return wrong(parser, "a name with U+0000");
  if (list)
    return add_name(parser, copy_text(text, size));
  if (parser->key != KEY_NAME)
    return wrong(parser, "text where none belongs");
  char *copy = copy_text(text, size);
  if (parser->where == NODE)
    simulator->node.items[simulator->node.count - 1].name = copy;
  else
    simulator->buffer.items[simulator->buffer.count - 1].name = copy;
  return copy ? 1 : out_of_memory(parser);
}

/* A value that is no string, list or object; false if it is to be ignored. */
static bool is_wanted(const struct parser *parser) {
  return !parser->skip &&
         (parser->key != KEY_NONE ||
          (parser->where != ROOT && parser->where != NODE && parser->where != BUFFER));
}

static int on_integer(void *data, long long value) {
  struct parser *parser = data;
  if (!is_wanted(parser))
    return 1;
  if (parser->key != KEY_ALLOC && parser->key != KEY_FREE)
    return wrong(parser, "a number where none belongs");
  if (value < 0)
    return wrong(parser, "a size is negative");
  struct buffer *buffer = parser->simulator->buffer.items + parser->simulator->buffer.count - 1;
  *(parser->key == KEY_ALLOC ? &buffer->allocated : &buffer->freed) = value;
  return 1;
}

static int on_boolean(void *data, int value) {
  struct parser *parser = data;
  if (!is_wanted(parser))
    return 1;
  if (parser->key != KEY_INPUT && parser->key != KEY_OUTPUT)
    return wrong(parser, "true or false where neither belongs");
  struct buffer *buffer = parser->simulator->buffer.items + parser->simulator->buffer.count - 1;
  *(parser->key == KEY_INPUT ? &buffer->input : &buffer->output) = value;
  return 1;
}

static int on_double(void *data, double value) {
  (void)value;
  return !is_wanted(data) || wrong(data, "a number with a fraction");
}

static int on_null(void *data) {
  return !is_wanted(data) || wrong(data, "null where it does not belong");
}

static void set_position(const uint8_t *bytes, size_t offset, pp_error *error) {
  if (!error)
    return;
  error->line = 1;
  size_t begin = 0;
  for (size_t i = 0; i < offset; i++)
    if (bytes[i] == '\n') {
      error->line++;
      begin = i + 1;
    }
  error->column = (int64_t)(offset - begin) + 1;
}

static pp_status parse(struct simulator *simulator, const uint8_t *bytes, size_t size,
                       pp_error *error) {
  static const yajl_callbacks callbacks = {on_null,    on_boolean,  on_integer,   on_double,
                                           NULL,       on_string,   begin_object, map_key,
                                           end_object, begin_array, end_array};
  struct parser parser = {.simulator = simulator, .error = error};
  yajl_handle yajl = yajl_alloc(&callbacks, NULL, &parser);
  if (!yajl)
    return pp_fail_memory(error);
  yajl_status got = yajl_parse(yajl, bytes, size);
  size_t offset = yajl_get_bytes_consumed(yajl);
  if (got == yajl_status_ok && (got = yajl_complete_parse(yajl)) != yajl_status_ok)
    offset = size;
  if (got != yajl_status_ok && !parser.status) {
    unsigned char *text = yajl_get_error(yajl, 0, bytes, size);
    char *newline = text ? strchr((char *)text, '\n') : NULL;
    if (newline)
      *newline = 0;
    parser.status = pp_fail(error, PP_ERROR_INPUT, "%s", text ? (char *)text : "no JSON");
    yajl_free_error(yajl, text);
  }
  yajl_free(yajl);
  if (parser.status == PP_ERROR_INPUT)
    set_position(bytes, offset < size ? offset : size, error);
  return parser.status;
}

/* ---- Names ---- */

struct entry {
  const char *name;
  pp_index buffer;
};

static int compare_entries(const void *a, const void *b) {
  return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static pp_index find(const struct entry *entry, size_t count, const char *name) {
  struct entry wanted = {name, NONE};
  const struct entry *found =
      count ? bsearch(&wanted, entry, count, sizeof *entry, compare_entries) : NULL;
  return found ? found->buffer : NONE;
}

static pp_status set_makers(struct simulator *simulator, pp_error *error) {
  for (size_t n = 0; n < simulator->node.count; n++) {
    const struct node *node = simulator->node.items + n;
    for (size_t i = 0; i < node->count; i++) {
      pp_index made = simulator->made.items[node->first + i].buffer;
      if (made == NONE)
        continue; /* Inductor leaves out buffers that no operator defines */
      struct buffer *buffer = simulator->buffer.items + made;
      if (buffer->maker != NONE || buffer->input)
        return pp_fail(error, PP_ERROR_INPUT, "buffer \"%.100s\" is made twice", buffer->name);
      buffer->maker = (pp_index)n;
    }
  }
  for (size_t i = 0; i < simulator->buffer.count; i++)
    if (simulator->buffer.items[i].maker == NONE && !simulator->buffer.items[i].input)
      return pp_fail(error, PP_ERROR_INPUT, "buffer \"%.100s\" is made by no node",
                     simulator->buffer.items[i].name);
  return PP_OK;
}

static pp_status resolve(struct simulator *simulator, pp_error *error) {
  size_t count = simulator->buffer.count;
  if (count > INT32_MAX || simulator->node.count > INT32_MAX - 1)
    return pp_fail(error, PP_ERROR_OVERFLOW, "more than 2^31-1 nodes or buffers");
  struct entry *entry = pp_alloc(count, sizeof *entry);
  if (!entry)
    return pp_fail_memory(error);
  for (size_t i = 0; i < count; i++)
    entry[i] = (struct entry){simulator->buffer.items[i].name, (pp_index)i};
  if (count)
    qsort(entry, count, sizeof *entry, compare_entries);
  pp_status status = PP_OK;
  for (size_t i = 1; i < count && !status; i++)
    if (!strcmp(entry[i - 1].name, entry[i].name))
      status = pp_fail(error, PP_ERROR_INPUT, "two buffers are called \"%.100s\"", entry[i].name);
  for (size_t i = 0; i < simulator->made.count; i++)
    simulator->made.items[i].buffer = find(entry, count, simulator->made.items[i].text);
  for (size_t i = 0; i < simulator->dep.count; i++)
    simulator->dep.items[i].buffer = find(entry, count, simulator->dep.items[i].text);
  free(entry);
  return status ? status : set_makers(simulator, error);
}

/* ---- Several outputs ---- */

/* The buffer that was allocated for a child: the nearest one it is made from that allocates and
 * does not free. Buffers of no size (outputs in outputs) are looked through. */
static pp_index find_parent(const struct simulator *simulator, pp_index child, uint32_t *seen,
                            pp_index *queue) {
  size_t head = 0, tail = 0;
  uint32_t mark = (uint32_t)child + 1;
  queue[tail++] = child;
  seen[child] = mark;
  while (head < tail) {
    const struct buffer *buffer = simulator->buffer.items + queue[head++];
    for (size_t i = 0; i < buffer->count; i++) {
      pp_index dep = simulator->dep.items[buffer->first + i].buffer;
      if (dep == NONE || seen[dep] == mark || simulator->buffer.items[dep].freed)
        continue;
      if (simulator->buffer.items[dep].allocated)
        return dep;
      seen[dep] = mark;
      queue[tail++] = dep;
    }
  }
  return NONE;
}

static pp_status find_parents(struct simulator *simulator, pp_notices *notices, pp_error *error) {
  size_t count = simulator->buffer.count;
  uint32_t *seen = pp_zalloc(count, sizeof *seen);
  pp_index *queue = pp_alloc(count, sizeof *queue);
  pp_status status = seen && queue ? PP_OK : pp_fail_memory(error);
  for (size_t i = 0; i < count && !status; i++) {
    struct buffer *buffer = simulator->buffer.items + i;
    if (buffer->allocated && !buffer->freed)
      buffer->rest = buffer->allocated;
  }
  for (size_t i = 0; i < count && !status; i++) {
    struct buffer *buffer = simulator->buffer.items + i;
    if (buffer->allocated || !buffer->freed)
      continue;
    buffer->parent = find_parent(simulator, (pp_index)i, seen, queue);
    if (buffer->parent == NONE)
      pp_notices_add(notices, "buffer \"%s\" is freed but not allocated: it begins with its node",
                     buffer->name);
    else
      simulator->buffer.items[buffer->parent].rest -= buffer->freed;
  }
  free(seen);
  free(queue);
  return status;
}

/* ---- The program ---- */

static pp_status add_storages(const struct simulator *simulator, pp_program *program,
                              pp_error *error) {
  pp_status status = PP_OK;
  for (size_t i = 0; i < simulator->buffer.count && !status; i++) {
    const struct buffer *buffer = simulator->buffer.items + i;
    int64_t bytes = buffer->freed > buffer->allocated ? buffer->freed : buffer->allocated;
    unsigned flags = (buffer->input ? PP_LIVE_IN : 0) | (buffer->output ? PP_LIVE_OUT : 0);
    if (buffer->allocated && !buffer->freed) { /* what no child frees stays to the end */
      bytes = buffer->rest > 0 ? buffer->rest : 0;
      flags |= bytes ? PP_LIVE_OUT : 0;
    }
    status = pp_program_add_storage(program, buffer->name, bytes, flags, NULL, error);
  }
  return status;
}

static pp_status add_access(pp_program *program, pp_index storage, unsigned flags,
                            pp_error *error) {
  return pp_program_add_access(program, storage, PP_WHOLE, PP_WHOLE, flags, error);
}

/* A node reads what its buffers are made from. child[b]: the first child of buffer b, next[c] the
 * next one. */
static pp_status add_statement(const struct simulator *simulator, pp_program *program,
                               const struct node *node, const pp_index *child, const pp_index *next,
                               pp_error *error) {
  pp_status status = pp_program_add_statement(program, node->name, error);
  for (size_t i = 0; i < node->count && !status; i++) {
    pp_index made = simulator->made.items[node->first + i].buffer;
    if (made == NONE)
      continue;
    const struct buffer *buffer = simulator->buffer.items + made;
    for (size_t d = 0; d < buffer->count && !status; d++) {
      pp_index dep = simulator->dep.items[buffer->first + d].buffer;
      if (dep != NONE)
        status = add_access(program, dep, PP_READ, error);
    }
    if (!status)
      status = add_access(program, made, PP_WRITE, error);
    for (pp_index c = child[made]; c != NONE && !status; c = next[c])
      status = add_access(program, c, PP_WRITE, error);
  }
  return status;
}

/* What a node needs must have been made before it, or in it. */
static pp_status check_order(const struct simulator *simulator, pp_error *error) {
  for (size_t i = 0; i < simulator->buffer.count; i++) {
    const struct buffer *buffer = simulator->buffer.items + i;
    for (size_t d = 0; d < buffer->count; d++) {
      pp_index dep = simulator->dep.items[buffer->first + d].buffer;
      if (dep != NONE && simulator->buffer.items[dep].maker > buffer->maker)
        return pp_fail(error, PP_ERROR_INPUT,
                       "buffer \"%.80s\" is made from \"%.80s\", which is made later", buffer->name,
                       simulator->buffer.items[dep].name);
    }
  }
  return PP_OK;
}

static pp_status fill(const struct simulator *simulator, pp_program *program, pp_index *child,
                      pp_index *next, pp_error *error) {
  for (size_t i = 0; i < simulator->buffer.count; i++)
    child[i] = NONE;
  for (size_t i = simulator->buffer.count; i--;) {
    pp_index parent = simulator->buffer.items[i].parent;
    if (parent == NONE)
      continue;
    next[i] = child[parent];
    child[parent] = (pp_index)i;
  }
  pp_status status = add_storages(simulator, program, error);
  for (size_t n = 0; n < simulator->node.count && !status; n++)
    status = add_statement(simulator, program, simulator->node.items + n, child, next, error);
  return status ? status : pp_program_finish(program, error);
}

static pp_status build(const pp_model *model, size_t index, const int64_t *peak,
                       pp_program **program, pp_error *error) {
  const struct simulator *simulator = model->data;
  (void)index, (void)peak;
  pp_program *made = pp_program_new(error);
  pp_index *child = pp_alloc(simulator->buffer.count, sizeof *child);
  pp_index *next = pp_alloc(simulator->buffer.count, sizeof *next);
  pp_status status = PP_ERROR_MEMORY;
  if (!made || !child || !next)
    pp_fail_memory(error);
  else if (!(status = pp_program_set_name(made, model->name[0], error)))
    status = fill(simulator, made, child, next, error);
  free(child);
  free(next);
  if (status)
    pp_program_free(made);
  else
    *program = made;
  return status;
}

/* ---- The model ---- */

static void free_data(pp_model *model) {
  struct simulator *simulator = model->data;
  for (size_t i = 0; i < simulator->node.count; i++)
    free(simulator->node.items[i].name);
  for (size_t i = 0; i < simulator->buffer.count; i++)
    free(simulator->buffer.items[i].name);
  for (size_t i = 0; i < simulator->made.count; i++)
    free(simulator->made.items[i].text);
  for (size_t i = 0; i < simulator->dep.count; i++)
    free(simulator->dep.items[i].text);
  free(simulator->node.items);
  free(simulator->buffer.items);
  free(simulator->made.items);
  free(simulator->dep.items);
  free(simulator);
}

static const struct pp_model_operations operations = {build, NULL, free_data};

bool pp_simulator_test(const uint8_t *bytes, size_t size) {
  static const char *const first[] = {"\"nodes\"", "\"buffers\""};
  size_t i = 0;
  while (i < size && bytes[i] && strchr(" \t\r\n", bytes[i]))
    i++;
  if (i == size || bytes[i++] != '{')
    return false;
  while (i < size && bytes[i] && strchr(" \t\r\n", bytes[i]))
    i++;
  for (size_t k = 0; k < 2; k++)
    if (size - i >= strlen(first[k]) && !memcmp(bytes + i, first[k], strlen(first[k])))
      return true;
  return false;
}

pp_status pp_simulator_read(pp_model *model, const pp_read_options *options, pp_error *error) {
  struct simulator *simulator = pp_zalloc(1, sizeof *simulator);
  (void)options;
  if (!simulator)
    return pp_fail_memory(error);
  model->data = simulator;
  model->operations = &operations;
  model->format = PP_FORMAT_SIMULATOR;
  pp_status status;
  if ((status = parse(simulator, model->bytes, model->size, error)) ||
      (status = resolve(simulator, error)) || (status = check_order(simulator, error)) ||
      (status = find_parents(simulator, &model->notices, error)))
    return status;
  model->name = pp_zalloc(1, sizeof *model->name);
  model->sequence = pp_zalloc(1, sizeof *model->sequence);
  if (!model->name || !model->sequence || !(model->name[0] = strdup("main")))
    return pp_fail_memory(error);
  model->programs = 1;
  return PP_OK;
}
