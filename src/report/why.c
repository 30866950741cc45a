/* Why a peak is what it is: the step that sets it, what is held there, and what can still help. */
#include <inttypes.h>
#include <string.h>

#include "error.h"
#include "format/json.h"
#include "memory.h"
#include "report/timeline.h"

/* A storage that exists while the step runs. */
struct held {
  pp_index storage;
  int64_t bytes;
  pp_index since, until; /* steps; -1: before the first, n: after the last */
  bool used;             /* by the step's statement */
};

struct peak {
  int64_t bytes;
  pp_index step;      /* -1: nothing runs, the program has no statements */
  pp_index statement; /* of that step, or -1 */
  pp_index others;    /* steps that reach the same bytes */
  int64_t work, floor;
  pp_index floor_statement;
  struct held *held;
  size_t count;
};

static pp_index statement_at(const pp_why *why, pp_index step) {
  return why->order ? why->order[step] : step;
}

static bool accesses(const pp_program *program, pp_index statement, pp_index storage) {
  const pp_index *accessed;
  size_t low = 0, high = pp_program_accessed(program, statement, &accessed);
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (accessed[middle] == storage)
      return true;
    if (accessed[middle] < storage)
      low = middle + 1;
    else
      high = middle;
  }
  return false;
}

static int by_size(const void *a, const void *b) {
  const struct held *x = a, *y = b;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return (x->storage > y->storage) - (x->storage < y->storage);
}

static void collect(const pp_why *why, const pp_index *first, const pp_index *last,
                    struct peak *peak) {
  pp_index n = pp_program_statements(why->program);
  for (pp_index s = 0; s < pp_program_storages(why->program); s++) {
    int64_t bytes = pp_program_storage(why->program, s).bytes;
    bool nothing = first[s] == -1 && last[s] == -1;
    if (nothing || first[s] > peak->step || (last[s] < peak->step && last[s] != n))
      continue;
    bool used = peak->statement >= 0 && accesses(why->program, peak->statement, s);
    peak->held[peak->count++] = (struct held){s, bytes, first[s], last[s], used};
  }
  qsort(peak->held, peak->count, sizeof *peak->held, by_size);
}

static void find_step(const pp_why *why, const int64_t *step, struct peak *peak) {
  pp_index n = pp_program_statements(why->program);
  peak->step = peak->statement = -1;
  for (pp_index i = 0; i < n; i++) {
    if (step[i] != peak->bytes)
      continue;
    if (peak->step < 0)
      peak->step = i;
    else
      peak->others++;
  }
  if (peak->step >= 0)
    peak->statement = statement_at(why, peak->step);
  if (peak->statement >= 0)
    peak->work = pp_program_statement(why->program, peak->statement).work;
}

static pp_status find_peak(const pp_why *why, struct peak *peak, pp_error *error) {
  size_t n = (size_t)pp_program_statements(why->program),
         m = (size_t)pp_program_storages(why->program);
  *peak = (struct peak){.held = pp_alloc(m, sizeof *peak->held)};
  int64_t *step = pp_alloc(n, sizeof *step);
  pp_index *first = pp_alloc(m, sizeof *first), *last = pp_alloc(m, sizeof *last);
  pp_status status = PP_OK;
  if (!peak->held || !step || !first || !last)
    status = pp_fail_memory(error);
  if (!status)
    status = pp_simulate(why->program, why->order, &peak->bytes, step, NULL, error);
  if (!status)
    status = pp_lifetimes(why->program, why->order, first, last, error);
  if (!status) {
    find_step(why, step, peak);
    collect(why, first, last, peak);
    peak->floor = pp_floor(why->program, &peak->floor_statement);
  }
  free(step);
  free(first);
  free(last);
  return status;
}

/* ---- Text ---- */

static void name_statement(const pp_why *why, pp_index v, FILE *file) {
  pp_statement_info info = pp_program_statement(why->program, v);
  fprintf(file, "statement %d", v);
  if (*info.name)
    pp_print(file, " \"%s\"", info.name);
  if (info.line >= 0)
    fprintf(file, " (line %" PRId64 ")", info.line);
}

static void when(const pp_why *why, pp_index step, bool begin, char *text, size_t size) {
  pp_index n = pp_program_statements(why->program);
  if (step < 0 || step >= n)
    snprintf(text, size, "%s", begin ? "before the start" : "after the end");
  else
    snprintf(text, size, "step %d, %.22s", step,
             pp_program_statement(why->program, statement_at(why, step)).name);
}

static void list_held(const pp_why *why, const struct peak *peak, FILE *file) {
  size_t empty = 0;
  fprintf(file, "\n  %12s  %-32s  %-32s  %s\n", "bytes", "storage", "since", "until");
  for (size_t i = 0; i < peak->count; i++) {
    const struct held *h = peak->held + i;
    char storage[64], since[64], until[64];
    if (!h->bytes) {
      empty++;
      continue;
    }
    const char *name = pp_program_storage(why->program, h->storage).name;
    snprintf(storage, sizeof storage, "%d%s%.22s%s", h->storage, *name ? " " : "", name,
             h->used ? " *" : "");
    when(why, h->since, true, since, sizeof since);
    when(why, h->until, false, until, sizeof until);
    pp_print(file, "  %12" PRId64 "  %-32s  %-32s  %s", h->bytes, storage, since, until);
    putc('\n', file);
  }
  if (peak->work)
    fprintf(file, "  %12" PRId64 "  work of the statement itself\n", peak->work);
  fprintf(file, "  %12" PRId64 "  in all; * accessed by the step\n", peak->bytes);
  if (empty)
    fprintf(file, "  %12s  and %zu storages of 0 bytes\n", "", empty);
}

static void say_order(const pp_why *why, const struct peak *peak, FILE *file) {
  char text[PP_BYTES_TEXT];
  if (!why->plan)
    fprintf(file, "  order          not examined\n");
  else if (pp_plan_lower_bound(why->plan) >= peak->bytes)
    fprintf(file, "  order          cannot help: proved optimal (%s)\n",
            pp_proof_name(pp_plan_proof(why->plan)));
  else if (pp_plan_peak(why->plan) < peak->bytes)
    fprintf(file, "  order          helps: an order with %s is known (peakproof plan)\n",
            pp_bytes_text(text, pp_plan_peak(why->plan)));
  else
    fprintf(file, "  order          may help: no order is proved below %s\n",
            pp_bytes_text(text, pp_plan_lower_bound(why->plan)));
}

static void levers(const pp_why *why, const struct peak *peak, FILE *file) {
  char text[PP_BYTES_TEXT];
  if (!peak->bytes)
    return;
  pp_bytes_text(text, peak->floor);
  fprintf(file, "\nWhat can lower it\n");
  say_order(why, peak, file);
  if (peak->floor_statement < 0) {
    fprintf(file, "  recomputation  cannot help\n"
                  "  splitting      cannot help: the peak is what exists from start to end\n");
    return;
  }
  if (peak->bytes <= peak->floor)
    fprintf(file, "  recomputation  cannot help: the peak is what one statement needs\n"
                  "  splitting      can help: ");
  else
    fprintf(file,
            "  recomputation  may help, at best down to %s, what one statement needs\n"
            "  splitting      does not help before that: ",
            text);
  name_statement(why, peak->floor_statement, file);
  fprintf(file, " needs %s\n", text);
}

pp_status pp_report_levers(const pp_why *why, FILE *file, pp_error *error) {
  struct peak peak;
  pp_status status = find_peak(why, &peak, error);
  if (!status)
    levers(why, &peak, file);
  free(peak.held);
  return status;
}

static pp_status draw_bar(const pp_why *why, const pp_style *style, pp_error *error) {
  pp_timeline timeline;
  pp_status status = pp_timeline_make(why->program, why->order, &timeline, error);
  if (!status && timeline.peak_step >= 0) {
    fputc('\n', style->file);
    pp_report_bar(&timeline, style, why->bar, why->unicode);
  }
  pp_timeline_free(&timeline);
  return status;
}

pp_status pp_report_why(const pp_why *why, const pp_style *style, pp_error *error) {
  struct peak peak;
  char text[PP_BYTES_TEXT];
  FILE *file = style->file;
  pp_status status = find_peak(why, &peak, error);
  if (status) {
    free(peak.held);
    return status;
  }
  pp_print(file, "%s, %s, in the %s order", why->path, why->name,
           why->order ? "planned" : "original");
  putc('\n', file);
  fprintf(file, "  the peak is %s", pp_bytes_text(text, peak.bytes));
  if (peak.step >= 0) {
    fprintf(file, ", in step %d of %d: ", peak.step, pp_program_statements(why->program));
    name_statement(why, peak.statement, file);
  }
  if (peak.others)
    fprintf(file, "; %d other step%s as much", peak.others, peak.others == 1 ? " needs" : "s need");
  fputc('\n', file);
  if (why->bar)
    status = draw_bar(why, style, error);
  if (!status) {
    list_held(why, &peak, file);
    levers(why, &peak, file);
  }
  free(peak.held);
  return status;
}

/* ---- JSON ---- */

static void write_held(pp_json *json, const pp_why *why, const struct peak *peak) {
  pp_json_text(json, ",\n \"held\": [");
  for (size_t i = 0; i < peak->count; i++) {
    const struct held *h = peak->held + i;
    pp_json_key_integer(json, i ? ",\n  {\"storage\": " : "\n  {\"storage\": ", h->storage);
    pp_json_key_string(json, ", \"name\": ", pp_program_storage(why->program, h->storage).name);
    pp_json_key_integer(json, ", \"bytes\": ", h->bytes);
    pp_json_key_integer(json, ", \"since\": ", h->since);
    pp_json_key_integer(json, ", \"until\": ", h->until);
    pp_json_key_bool(json, ", \"accessed\": ", h->used);
    pp_json_text(json, "}");
  }
  pp_json_text(json, "]");
}

static void write_levers(pp_json *json, const pp_why *why, const struct peak *peak) {
  bool floor = peak->bytes <= peak->floor;
  const char *order = !why->plan                                      ? "unknown"
                      : pp_plan_lower_bound(why->plan) >= peak->bytes ? "no"
                      : pp_plan_peak(why->plan) < peak->bytes         ? "yes"
                                                                      : "unknown";
  pp_json_key_string(json, ",\n \"helps\": {\"order\": ", order);
  pp_json_key_string(json, ", \"recomputation\": ", floor ? "no" : "unknown");
  pp_json_key_string(json, ", \"splitting\": ", floor ? "yes" : "no");
  pp_json_text(json, "}");
}

pp_status pp_report_why_json(const pp_why *why, pp_write *write, void *data, pp_error *error) {
  struct peak peak;
  pp_json json;
  pp_status status = find_peak(why, &peak, error);
  if (status) {
    free(peak.held);
    return status;
  }
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"model\": ", why->path);
  pp_json_key_string(&json, ", \"program\": ", why->name);
  pp_json_text(&json, why->order ? ", \"order\": \"planned\"" : ", \"order\": \"original\"");
  pp_json_key_integer(&json, ",\n \"peak\": ", peak.bytes);
  pp_json_key_integer(&json, ", \"step\": ", peak.step);
  pp_json_key_integer(&json, ", \"statement\": ", peak.statement);
  if (peak.statement >= 0) {
    pp_statement_info info = pp_program_statement(why->program, peak.statement);
    pp_json_key_string(&json, ", \"statement_name\": ", info.name);
    if (info.line >= 0)
      pp_json_key_integer(&json, ", \"line\": ", info.line);
  }
  pp_json_key_integer(&json, ", \"work\": ", peak.work);
  pp_json_key_integer(&json, ", \"floor\": ", peak.floor);
  pp_json_key_integer(&json, ", \"floor_statement\": ", peak.floor_statement);
  write_levers(&json, why, &peak);
  write_held(&json, why, &peak);
  pp_json_text(&json, "}\n");
  free(peak.held);
  return pp_json_end(&json, error);
}
