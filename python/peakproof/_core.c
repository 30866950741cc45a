/* _core: the peakproof core for Python, in the limited API (one wheel for Python 3.10 and later).
 *
 * The program comes as lists of tuples, which peakproof/core.py makes from a checked dict:
 *   storages    [(name, bytes, flags)]
 *   statements  [(name, [request], [(storage, from, to, flags)], macs, pure, line)]
 *   orders      [(before, after)]
 * Errors of the core become ValueError (input), MemoryError or RuntimeError. */
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030A0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <peakproof.h>
#include <stdlib.h>
#include <string.h>

static PyObject *raise_error(const pp_error *error) {
  PyObject *type = PyExc_RuntimeError;
  if (error->status == PP_ERROR_MEMORY)
    type = PyExc_MemoryError;
  else if (error->status == PP_ERROR_OVERFLOW)
    type = PyExc_OverflowError;
  else if (error->status == PP_ERROR_INPUT || error->status == PP_ERROR_USAGE)
    type = PyExc_ValueError;
  PyErr_SetString(type, error->message);
  return NULL;
}

static bool check(pp_status status, const pp_error *error) {
  if (status != PP_OK)
    raise_error(error);
  return status == PP_OK;
}

static bool add_storages(pp_program *program, PyObject *list) {
  pp_error error;
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    const char *name;
    long long bytes;
    unsigned flags;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "zLI", &name, &bytes, &flags))
      return false;
    if (!check(pp_program_add_storage(program, name, bytes, flags, NULL, &error), &error))
      return false;
  }
  return true;
}

static bool add_accesses(pp_program *program, PyObject *list) {
  pp_error error;
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    int storage;
    long long from, to;
    unsigned flags;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "iLLI", &storage, &from, &to, &flags))
      return false;
    if (!check(pp_program_add_access(program, storage, from, to, flags, &error), &error))
      return false;
  }
  return true;
}

static bool add_statement(pp_program *program, PyObject *tuple) {
  pp_error error;
  const char *name;
  PyObject *requests, *accesses;
  long long macs, line;
  int pure;
  if (!PyArg_ParseTuple(tuple, "zO!O!LpL", &name, &PyList_Type, &requests, &PyList_Type, &accesses,
                        &macs, &pure, &line))
    return false;
  if (!check(pp_program_add_statement(program, name, &error), &error))
    return false;
  for (Py_ssize_t i = 0; i < PyList_Size(requests); i++) {
    long long bytes = PyLong_AsLongLong(PyList_GetItem(requests, i));
    if (bytes == -1 && PyErr_Occurred())
      return false;
    if (!check(pp_program_add_work(program, bytes, &error), &error))
      return false;
  }
  if (macs >= 0 && !check(pp_program_set_macs(program, macs, &error), &error))
    return false;
  if (line >= 0 && !check(pp_program_set_line(program, line, &error), &error))
    return false;
  if (!check(pp_program_set_pure(program, pure != 0, &error), &error))
    return false;
  return add_accesses(program, accesses);
}

static bool add_orders(pp_program *program, PyObject *list) {
  pp_error error;
  for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
    int before, after;
    if (!PyArg_ParseTuple(PyList_GetItem(list, i), "ii", &before, &after))
      return false;
    if (!check(pp_program_add_order(program, before, after, &error), &error))
      return false;
  }
  return true;
}

/* A finished program, or NULL with an exception. */
static pp_program *build(const char *name, PyObject *storages, PyObject *statements,
                         PyObject *orders) {
  pp_error error;
  pp_program *program = pp_program_new(&error);
  if (!program) {
    raise_error(&error);
    return NULL;
  }
  bool ok = check(pp_program_set_name(program, name, &error), &error);
  ok = ok && add_storages(program, storages);
  for (Py_ssize_t i = 0; ok && i < PyList_Size(statements); i++)
    ok = add_statement(program, PyList_GetItem(statements, i));
  ok = ok && add_orders(program, orders);
  ok = ok && check(pp_program_finish(program, &error), &error);
  if (ok)
    return program;
  pp_program_free(program);
  return NULL;
}

/* ---- solve ------------------------------------------------------------------------------------
 */

/* Lets Ctrl-C stop the solver: the core asks now and then. */
static bool interrupted(const pp_progress *progress, void *data) {
  (void)progress;
  PyGILState_STATE state = PyGILState_Ensure();
  bool stop = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  *(bool *)data |= stop;
  return stop;
}

typedef struct buffer {
  char *bytes;
  size_t size, capacity;
} buffer;

static bool append(const void *bytes, size_t size, void *data) {
  buffer *b = data;
  if (size > b->capacity - b->size) {
    size_t capacity = b->capacity ? b->capacity : 4096;
    while (capacity - b->size < size) {
      if (capacity > SIZE_MAX / 2)
        return false;
      capacity *= 2;
    }
    char *grown = realloc(b->bytes, capacity);
    if (!grown)
      return false;
    b->bytes = grown;
    b->capacity = capacity;
  }
  memcpy(b->bytes + b->size, bytes, size);
  b->size += size;
  return true;
}

static PyObject *certificate(const pp_plan *plan, const char *sha256) {
  if (!sha256)
    Py_RETURN_NONE;
  pp_error error;
  buffer text = {0};
  pp_status status = pp_certificate_write(plan, sha256, append, &text, &error);
  PyObject *out = status == PP_OK ? PyBytes_FromStringAndSize(text.bytes, (Py_ssize_t)text.size)
                                  : raise_error(&error);
  free(text.bytes);
  return out;
}

static PyObject *list_of(const pp_index *values, pp_index n) {
  PyObject *list = PyList_New(n);
  for (pp_index i = 0; list && i < n; i++) {
    PyObject *value = PyLong_FromLong(values[i]);
    if (!value || PyList_SetItem(list, i, value) < 0)
      Py_CLEAR(list);
  }
  return list;
}

static PyObject *plan_dict(const pp_program *program, const pp_plan *plan, const char *sha256) {
  PyObject *proof = certificate(plan, sha256);
  PyObject *order = proof ? list_of(pp_plan_order(plan), pp_program_statements(program)) : NULL;
  if (!order) {
    Py_XDECREF(proof);
    return NULL;
  }
  pp_index statement;
  int64_t floor = pp_floor(program, &statement);
  return Py_BuildValue(
      "{sLsLsLsLsLsisOsOsssNsdsLsN}", "peak_before", (long long)pp_plan_peak_before(plan),
      "peak_after", (long long)pp_plan_peak(plan), "lower_bound",
      (long long)pp_plan_lower_bound(plan), "searched_bound",
      (long long)pp_plan_searched_bound(plan), "floor", (long long)floor, "floor_statement",
      (int)statement, "optimal", pp_plan_optimal(plan) ? Py_True : Py_False, "limited",
      pp_plan_limited(plan) ? Py_True : Py_False, "proof", pp_proof_name(pp_plan_proof(plan)),
      "order", order, "seconds", pp_plan_seconds(plan), "states", (long long)pp_plan_states(plan),
      "certificate", proof);
}

static PyObject *solve(PyObject *self, PyObject *args) {
  (void)self;
  const char *name, *sha256;
  PyObject *storages, *statements, *orders;
  pp_options options = {0};
  long long state_limit;
  if (!PyArg_ParseTuple(args, "zO!O!O!dLz", &name, &PyList_Type, &storages, &PyList_Type,
                        &statements, &PyList_Type, &orders, &options.time_limit, &state_limit,
                        &sha256))
    return NULL;
  pp_program *program = build(name, storages, statements, orders);
  if (!program)
    return NULL;
  bool stopped = false;
  options.state_limit = state_limit;
  options.progress = interrupted;
  options.data = &stopped;
  pp_plan *plan = NULL;
  pp_error error;
  pp_status status;
  Py_BEGIN_ALLOW_THREADS status = pp_solve(program, &options, &plan, &error);
  Py_END_ALLOW_THREADS PyObject *out = NULL;
  if (stopped || PyErr_Occurred())
    ;
  else if (status != PP_OK)
    raise_error(&error);
  else
    out = plan_dict(program, plan, sha256);
  pp_plan_free(plan);
  pp_program_free(program);
  return out;
}

/* ---- remat ------------------------------------------------------------------------------------
 */

static PyObject *list_of_points(const pp_remat *found) {
  PyObject *list = PyList_New((Py_ssize_t)pp_remat_points(found));
  for (size_t i = 0; list && i < pp_remat_points(found); i++) {
    pp_remat_point p = pp_remat_point_of(found, i);
    PyObject *point = Py_BuildValue("{sLsLsLsLss}", "peak", (long long)p.peak, "extra_macs",
                                    (long long)p.extra_macs, "extra_bytes",
                                    (long long)p.extra_bytes, "extra_runs", (long long)p.extra_runs,
                                    "status", pp_remat_status_name(p.status));
    if (!point || PyList_SetItem(list, (Py_ssize_t)i, point) < 0)
      Py_CLEAR(list);
  }
  return list;
}

/* The storages that each statement accesses. */
static PyObject *list_of_accessed(const pp_program *program) {
  pp_index n = pp_program_statements(program);
  PyObject *list = PyList_New(n);
  for (pp_index v = 0; list && v < n; v++) {
    const pp_index *accessed;
    size_t count = pp_program_accessed(program, v, &accessed);
    PyObject *row = list_of(accessed, (pp_index)count);
    if (!row || PyList_SetItem(list, v, row) < 0)
      Py_CLEAR(list);
  }
  return list;
}

/* The cheapest point of at most `target` bytes, else the lowest one. */
static size_t choose_point(const pp_remat *found, long long target) {
  size_t i = 0, last = pp_remat_points(found) - 1;
  while (i < last && pp_remat_point_of(found, i).peak > target)
    i++;
  return i;
}

static PyObject *remat_dict(const pp_plan *plan, const pp_remat *found, long long target) {
  pp_error error;
  pp_rewriting *rewriting;
  pp_index statement;
  int64_t floor = pp_remat_floor(found, &statement);
  size_t chosen = choose_point(found, target);
  if (!check(pp_remat_rewrite(found, chosen, &rewriting, &error), &error))
    return NULL;
  const pp_program *made = pp_rewriting_program(rewriting);
  PyObject *out = Py_BuildValue(
      "{sLsOsOsLsisLsisOsLsdsNsLsNsNsN}", "peak", (long long)pp_plan_peak(plan), "optimal",
      pp_plan_optimal(plan) ? Py_True : Py_False, "at_floor",
      pp_remat_at_floor(found) ? Py_True : Py_False, "floor", (long long)floor, "floor_statement",
      (int)statement, "macs", (long long)pp_remat_macs(found), "repeatable",
      (int)pp_remat_repeatable(found), "limited", pp_remat_limited(found) ? Py_True : Py_False,
      "states", (long long)pp_remat_states(found), "seconds", pp_remat_seconds(found), "points",
      list_of_points(found), "chosen", (long long)chosen, "statements",
      list_of(pp_rewriting_statements(rewriting), pp_program_statements(made)), "storages",
      list_of(pp_rewriting_storages(rewriting), pp_program_storages(made)), "accessed",
      list_of_accessed(made));
  pp_rewriting_free(rewriting);
  return out;
}

static PyObject *remat(PyObject *self, PyObject *args) {
  (void)self;
  const char *name;
  PyObject *storages, *statements, *orders;
  pp_remat_options options = {0};
  long long state_limit, macs, target;
  int cap;
  if (!PyArg_ParseTuple(args, "zO!O!O!dLiLL", &name, &PyList_Type, &storages, &PyList_Type,
                        &statements, &PyList_Type, &orders, &options.solve.time_limit, &state_limit,
                        &cap, &macs, &target))
    return NULL;
  pp_program *program = build(name, storages, statements, orders);
  if (!program)
    return NULL;
  bool stopped = false;
  options.solve.state_limit = state_limit;
  options.solve.progress = interrupted;
  options.solve.data = &stopped;
  options.cap = cap;
  options.max_extra_macs = macs;
  pp_plan *plan = NULL;
  pp_remat *found = NULL;
  pp_error error;
  pp_status status;
  Py_BEGIN_ALLOW_THREADS status = pp_solve(program, &options.solve, &plan, &error);
  if (status == PP_OK && !stopped)
    status = pp_remat_solve(program, plan, &options, &found, &error);
  Py_END_ALLOW_THREADS PyObject *out = NULL;
  if (stopped || PyErr_Occurred())
    ;
  else if (status != PP_OK)
    raise_error(&error);
  else
    out = remat_dict(plan, found, target);
  pp_remat_free(found);
  pp_plan_free(plan);
  pp_program_free(program);
  return out;
}

/* ---- simulate ---------------------------------------------------------------------------------
 */

static PyObject *list_of_bytes(const int64_t *values, pp_index n) {
  PyObject *list = PyList_New(n);
  for (pp_index i = 0; list && i < n; i++) {
    PyObject *value = PyLong_FromLongLong(values[i]);
    if (!value || PyList_SetItem(list, i, value) < 0)
      Py_CLEAR(list);
  }
  return list;
}

static bool read_order(PyObject *list, pp_index *order, pp_index n) {
  if (PyList_Size(list) != n) {
    PyErr_SetString(PyExc_ValueError, "the order does not name every statement once");
    return false;
  }
  for (pp_index i = 0; i < n; i++) {
    long value = PyLong_AsLong(PyList_GetItem(list, i));
    if (value == -1 && PyErr_Occurred())
      return false;
    if (value < 0 || value >= n) {
      PyErr_SetString(PyExc_ValueError, "the order names a statement that does not exist");
      return false;
    }
    order[i] = (pp_index)value;
  }
  return true;
}

static PyObject *simulate_program(const pp_program *program, PyObject *list) {
  pp_index n = pp_program_statements(program), m = pp_program_storages(program);
  pp_index *order = malloc(((size_t)n + 1) * sizeof *order);
  int64_t *step = malloc(((size_t)n + 1) * sizeof *step);
  int64_t *between = malloc(((size_t)n + 1) * sizeof *between);
  pp_index *first = malloc(((size_t)m + 1) * sizeof *first);
  pp_index *last = malloc(((size_t)m + 1) * sizeof *last);
  PyObject *out = NULL;
  pp_error error;
  int64_t peak;
  if (!order || !step || !between || !first || !last) {
    PyErr_NoMemory();
  } else if (read_order(list, order, n) &&
             check(pp_simulate(program, order, &peak, step, between, &error), &error) &&
             check(pp_lifetimes(program, order, first, last, &error), &error)) {
    out = Py_BuildValue("{sLsNsNsNsN}", "peak", (long long)peak, "step", list_of_bytes(step, n),
                        "between", list_of_bytes(between, n + 1), "first", list_of(first, m),
                        "last", list_of(last, m));
  }
  free(order);
  free(step);
  free(between);
  free(first);
  free(last);
  return out;
}

static PyObject *simulate(PyObject *self, PyObject *args) {
  (void)self;
  const char *name;
  PyObject *storages, *statements, *orders, *order;
  if (!PyArg_ParseTuple(args, "zO!O!O!O!", &name, &PyList_Type, &storages, &PyList_Type,
                        &statements, &PyList_Type, &orders, &PyList_Type, &order))
    return NULL;
  pp_program *program = build(name, storages, statements, orders);
  if (!program)
    return NULL;
  PyObject *out = simulate_program(program, order);
  pp_program_free(program);
  return out;
}

static PyObject *version(PyObject *self, PyObject *args) {
  (void)self;
  (void)args;
  return PyUnicode_FromString(pp_version());
}

static PyMethodDef methods[] = {
    {"solve", solve, METH_VARARGS,
     "solve(name, storages, statements, orders, time_limit, state_limit, sha256) -> dict"},
    {"remat", remat, METH_VARARGS,
     "remat(name, storages, statements, orders, time_limit, state_limit, cap, macs, target) -> "
     "dict"},
    {"simulate", simulate, METH_VARARGS,
     "simulate(name, storages, statements, orders, order) -> dict"},
    {"version", version, METH_NOARGS, "The version of the core."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "The peakproof core.", 0, methods, slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void);
PyMODINIT_FUNC PyInit__core(void) {
  return PyModuleDef_Init(&definition);
}
