/* The report of `peakproof arena`: text, JSON, a C header, a picture. */
#include "report/arena.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "error.h"
#include "format/json.h"

static double percent(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* ---- Text ---- */

/* What addition shows is called proved; what only a search says, for which no certificate exists,
 * is not. */
static void say_proof(const pp_arena_view *arena, const pp_style *style) {
  int64_t bytes = pp_arena_bytes(arena->packed), bound = pp_arena_lower_bound(arena->packed);
  bool added = pp_arena_proved_by(arena->packed) == PP_ARENA_LOAD;
  char text[PP_BYTES_TEXT];
  if (!pp_arena_optimal(arena->packed))
    fprintf(style->file, "  (none below %s is possible%s: %.2f%% open)\n",
            pp_bytes_text(text, bound), added ? "" : " by exact search, not certified",
            percent(bytes - bound, bytes));
  else if (!added)
    fprintf(style->file, "  (minimal by exact search, not certified)\n");
  else
    fprintf(style->file,
            style->color ? "  (\033[32mproved minimal\033[0m: %s)\n" : "  (proved minimal: %s)\n",
            "so much lives at one time");
}

static void say_arena(const pp_arena_report *report, const pp_arena_view *arena,
                      const pp_style *style) {
  char text[PP_BYTES_TEXT];
  if (*arena->name)
    fprintf(style->file, " %s\n", arena->name);
  fprintf(style->file, "  buffers      %zu\n", arena->count);
  fprintf(style->file, "  peak         %s\n", pp_bytes_text(text, pp_arena_load(arena->packed)));
  fprintf(style->file, "  arena        %s", pp_bytes_text(text, pp_arena_bytes(arena->packed)));
  say_proof(arena, style);
  if (arena->greedy >= 0)
    fprintf(style->file, "  %-12s %s by its own planner, %.1f%% more\n", report->runtime,
            pp_bytes_text(text, arena->greedy),
            percent(arena->greedy - arena->promised, arena->promised));
  if (arena->promised != pp_arena_bytes(arena->packed))
    fprintf(style->file, "  promised     %s: what the runtime places itself comes on top\n",
            pp_bytes_text(text, arena->promised));
  if (arena->scratch)
    fprintf(style->file, "  scratch      %s of it, as given\n",
            pp_bytes_text(text, arena->scratch));
  if (arena->persistent)
    fprintf(style->file, "  elsewhere    %s of variables\n",
            pp_bytes_text(text, arena->persistent));
  if (pp_arena_limited(arena->packed))
    fprintf(style->file, "  a limit or an interrupt cut the search short\n");
}

static void say_order(const pp_arena_report *report, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  const pp_planned *planned = report->planned;
  int64_t programs = 0;
  for (size_t i = 0; i < planned->model->programs; i++)
    programs += planned->program[i].plan != NULL;
  fprintf(style->file, "  order        of peak %s, %s; ", pp_bytes_text(text, planned->peak_all),
          planned->optimal ? "proved lowest" : "not proved lowest");
  if (report->refinement.orders == programs)
    fprintf(style->file, "the first one\n");
  else
    fprintf(style->file, "the best of %s%" PRId64 " of this peak\n",
            report->refinement.all ? "all " : "", report->refinement.orders);
}

static int64_t most(const pp_arena_report *report) {
  int64_t bytes = 0;
  for (size_t i = 0; i < report->arenas; i++)
    if (report->arena[i].promised > bytes)
      bytes = report->arena[i].promised;
  return bytes;
}

void pp_report_arena(const pp_arena_report *report, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  pp_print(style->file, "%s (%s, offsets are multiples of %" PRId64 ")", report->path,
           report->runtime, report->alignment);
  putc('\n', style->file);
  if (report->planned)
    say_order(report, style);
  for (size_t i = 0; i < report->arenas; i++)
    say_arena(report, &report->arena[i], style);
  if (!report->scratch_known && strcmp(report->runtime, "csv") != 0)
    fprintf(style->file, "  scratch of operators cannot be known from the file and comes on top; "
                         "--scratch gives it\n");
  if (report->budget->asked)
    fprintf(style->file, "  budget       %s: %s\n", pp_bytes_text(text, report->budget->bytes),
            most(report) <= report->budget->bytes ? "the arena fits" : "the arena does not fit");
}

/* ---- JSON ---- */

static void write_buffer(pp_json *json, const pp_arena_view *arena, size_t i) {
  pp_json_key_string(json, "{\"name\": ", arena->label[i]);
  if (arena->tensor && arena->tensor[i] >= 0)
    pp_json_key_integer(json, ", \"tensor\": ", arena->tensor[i]);
  pp_json_key_integer(json, ", \"first\": ", arena->buffer[i].first);
  pp_json_key_integer(json, ", \"last\": ", arena->buffer[i].last);
  pp_json_key_integer(json, ", \"bytes\": ", arena->buffer[i].bytes);
  pp_json_key_integer(json, ", \"offset\": ", arena->offset[i]);
  pp_json_text(json, "}");
}

static void write_arena(pp_json *json, const pp_arena_view *arena) {
  char seconds[32];
  pp_json_key_string(json, "{\"name\": ", arena->name);
  pp_json_key_integer(json, ", \"peak\": ", pp_arena_load(arena->packed));
  pp_json_key_integer(json, ", \"arena\": ", pp_arena_bytes(arena->packed));
  pp_json_key_integer(json, ", \"lower_bound\": ", pp_arena_lower_bound(arena->packed));
  pp_json_key_bool(json, ", \"minimal\": ", pp_arena_optimal(arena->packed));
  pp_json_key_string(json, ", \"proof\": ",
                     pp_arena_proved_by(arena->packed) == PP_ARENA_LOAD ? "load" : "search");
  pp_json_key_bool(json, ", \"certified\": ", pp_arena_proved_by(arena->packed) == PP_ARENA_LOAD);
  pp_json_key_integer(json, ", \"promised\": ", arena->promised);
  if (arena->greedy >= 0)
    pp_json_key_integer(json, ", \"greedy\": ", arena->greedy);
  pp_json_key_integer(json, ", \"scratch\": ", arena->scratch);
  pp_json_key_integer(json, ", \"persistent\": ", arena->persistent);
  pp_json_key_bool(json, ", \"limited\": ", pp_arena_limited(arena->packed));
  pp_json_key_integer(json, ", \"nodes\": ", pp_arena_nodes(arena->packed));
  snprintf(seconds, sizeof seconds, "%.6f", pp_arena_seconds(arena->packed));
  pp_json_text(json, ", \"seconds\": ");
  pp_json_text(json, seconds);
  pp_json_text(json, ",\n  \"buffers\": [");
  for (size_t i = 0; i < arena->count; i++) {
    pp_json_text(json, i ? ",\n   " : "\n   ");
    write_buffer(json, arena, i);
  }
  pp_json_text(json, "]}");
}

/* The orders that were chosen. */
static void write_orders(pp_json *json, const pp_arena_report *report) {
  const pp_planned *planned = report->planned;
  pp_json_key_integer(json, ", \"peak\": ", planned->peak_all);
  pp_json_key_bool(json, ", \"peak_optimal\": ", planned->optimal);
  pp_json_key_integer(json, ", \"orders_packed\": ", report->refinement.orders);
  pp_json_key_bool(json, ", \"all_orders\": ", report->refinement.all);
  const char *next = ",\n \"orders\": [";
  for (size_t i = 0; i < planned->model->programs; i++) {
    const pp_planned_program *it = &planned->program[i];
    if (!it->plan)
      continue;
    pp_json_text(json, next);
    pp_json_key_string(json, "{\"name\": ", planned->model->name[i]);
    pp_json_text(json, ", \"order\": [");
    for (pp_index k = 0; k < pp_program_statements(it->program); k++)
      pp_json_key_integer(json, k ? ", " : "", pp_plan_order(it->plan)[k]);
    pp_json_text(json, "]}");
    next = ",\n  ";
  }
  pp_json_text(json, "]");
}

pp_status pp_report_arena_json(const pp_arena_report *report, pp_write *write, void *data,
                               pp_error *error) {
  pp_json json;
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"model\": ", report->path);
  pp_json_key_string(&json, ", \"runtime\": ", report->runtime);
  pp_json_key_integer(&json, ", \"alignment\": ", report->alignment);
  pp_json_key_integer(&json, ", \"arena\": ", most(report));
  pp_json_key_bool(&json, ", \"scratch_known\": ", report->scratch_known);
  if (report->budget->asked) {
    pp_json_key_integer(&json, ", \"budget\": {\"bytes\": ", report->budget->bytes);
    pp_json_key_bool(&json, ", \"fits\": ", most(report) <= report->budget->bytes);
    pp_json_text(&json, "}");
  }
  if (report->planned)
    write_orders(&json, report);
  pp_json_text(&json, ",\n \"arenas\": [");
  for (size_t i = 0; i < report->arenas; i++) {
    pp_json_text(&json, i ? ",\n  " : "\n  ");
    write_arena(&json, &report->arena[i]);
  }
  pp_json_text(&json, "]}\n");
  return pp_json_end(&json, error);
}

/* ---- Lines of text to a pp_write ---- */

struct sink {
  pp_write *write;
  void *data;
  bool failed;
};

static void line(struct sink *sink, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void line(struct sink *sink, const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t size = length < (int)sizeof text ? (size_t)length : sizeof text - 1;
  sink->failed = sink->failed || !sink->write(text, size, sink->data);
}

static pp_status finish(const struct sink *sink, pp_error *error) {
  return sink->failed ? pp_fail(error, PP_ERROR_IO, "it could not be written") : PP_OK;
}

/* ---- C header ---- */

/* A comment must not end early, and a backslash must not join lines. */
static void write_comment(struct sink *sink, const char *text) {
  char safe[200];
  size_t i = 0;
  for (; text[i] && i < sizeof safe - 1; i++)
    safe[i] = text[i] == '*' || text[i] == '\\' || text[i] < ' ' || text[i] > '~' ? '_' : text[i];
  safe[i] = 0;
  line(sink, "/* %s */", safe);
}

static void header_arena(struct sink *sink, const pp_arena_view *arena, const char *prefix) {
  line(sink, "#define %s_BYTES %" PRId64 "\n", prefix, arena->promised);
  line(sink, "#define %s_BUFFERS %zu\n", prefix, arena->count);
  line(sink,
       "#ifdef __GNUC__\n__attribute__((unused)) /* who wants the size alone is not warned */\n"
       "#endif\n");
  line(sink,
       "static const struct {\n  int32_t tensor; /* -1: scratch */\n  uint64_t offset, bytes;\n} "
       "%s[%zu] = {\n",
       prefix, arena->count ? arena->count : 1);
  for (size_t i = 0; i < arena->count; i++) {
    line(sink, "    {%" PRId64 ", %" PRId64 ", %" PRId64 "}, ",
         arena->tensor ? arena->tensor[i] : (int64_t)i, arena->offset[i], arena->buffer[i].bytes);
    write_comment(sink, arena->label[i]);
    line(sink, "\n");
  }
  line(sink, arena->count ? "};\n" : "    {0, 0, 0}};\n");
}

pp_status pp_report_arena_header(const pp_arena_report *report, pp_write *write, void *data,
                                 pp_error *error) {
  struct sink sink = {write, data, false};
  char prefix[64];
  line(&sink, "/* Made by peakproof arena from this model: */\n");
  write_comment(&sink, report->path);
  line(&sink, "\n#ifndef PEAKPROOF_ARENA_H\n#define PEAKPROOF_ARENA_H\n\n#include <stdint.h>\n\n");
  line(&sink, "#define peakproof_arena_ALIGNMENT %" PRId64 "\n", report->alignment);
  for (size_t i = 0; i < report->arenas; i++) {
    if (report->arenas == 1)
      snprintf(prefix, sizeof prefix, "peakproof_arena");
    else
      snprintf(prefix, sizeof prefix, "peakproof_arena_%zu", i);
    line(&sink, "\n");
    write_comment(&sink, *report->arena[i].name ? report->arena[i].name : "the whole model");
    line(&sink, "\n");
    header_arena(&sink, &report->arena[i], prefix);
  }
  line(&sink, "\n#endif\n");
  return finish(&sink, error);
}

/* ---- SVG ---- */

enum { WIDTH = 1000, HEIGHT = 500, LEFT = 110, TOP = 40 };

struct frame {
  double first, last, bytes;
};

static double x_of(const struct frame *frame, double time) {
  return LEFT + WIDTH * (time - frame->first) / (frame->last - frame->first);
}

static double y_of(const struct frame *frame, double bytes) {
  return TOP + HEIGHT * (1 - bytes / frame->bytes);
}

static void write_xml(struct sink *sink, const char *text) {
  for (; *text; text++) {
    if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
      line(sink, "&#%d;", *text);
    else if (*text >= ' ' && *text <= '~')
      line(sink, "%c", *text);
    else
      line(sink, "?");
  }
}

static void draw_buffer(struct sink *sink, const pp_arena_view *arena, const struct frame *frame,
                        size_t i) {
  const pp_buffer *buffer = &arena->buffer[i];
  if (buffer->bytes == 0)
    return;
  double x = x_of(frame, (double)buffer->first), right = x_of(frame, (double)buffer->last + 1);
  double y = y_of(frame, (double)arena->offset[i] + (double)buffer->bytes);
  double bottom = y_of(frame, (double)arena->offset[i]);
  line(sink,
       "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%d,55%%,72%%)\" "
       "stroke=\"#333\" stroke-width=\"0.5\"><title>",
       x, y, right - x, bottom - y, (int)(i * 137 % 360));
  write_xml(sink, arena->label[i]);
  line(sink,
       ": %" PRId64 " bytes at %" PRId64 ", times %" PRId64 " to %" PRId64 "</title></rect>\n",
       buffer->bytes, arena->offset[i], buffer->first, buffer->last);
}

pp_status pp_report_arena_svg(const pp_arena_view *arena, pp_write *write, void *data,
                              pp_error *error) {
  struct sink sink = {write, data, false};
  struct frame frame = {INFINITY, -INFINITY, (double)arena->promised};
  for (size_t i = 0; i < arena->count; i++) {
    double first = (double)arena->buffer[i].first, last = (double)arena->buffer[i].last + 1;
    frame.first = first < frame.first ? first : frame.first;
    frame.last = last > frame.last ? last : frame.last;
  }
  if (arena->count == 0)
    frame.first = 0, frame.last = 1;
  if (frame.bytes <= 0)
    frame.bytes = 1;
  line(&sink,
       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
       "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"%d\" height=\"%d\" "
       "fill=\"white\"/>\n<text x=\"%d\" y=\"24\">",
       LEFT + WIDTH + 20, TOP + HEIGHT + 50, LEFT + WIDTH + 20, TOP + HEIGHT + 50, LEFT);
  write_xml(&sink, arena->name);
  line(&sink, " arena of %" PRId64 " bytes, lower bound %" PRId64 "</text>\n", arena->promised,
       pp_arena_lower_bound(arena->packed));
  for (size_t i = 0; i < arena->count; i++)
    draw_buffer(&sink, arena, &frame, i);
  line(&sink,
       "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"black\"/>\n",
       LEFT, TOP, WIDTH, HEIGHT);
  for (int i = 0; i <= 4; i++)
    line(&sink, "<text x=\"%d\" y=\"%.2f\" text-anchor=\"end\">%.0f</text>\n", LEFT - 6,
         y_of(&frame, frame.bytes * i / 4) + 4, frame.bytes * i / 4);
  line(&sink, "<text x=\"%d\" y=\"%d\">time %.0f</text>\n", LEFT, TOP + HEIGHT + 20, frame.first);
  line(&sink, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f</text>\n", LEFT + WIDTH,
       TOP + HEIGHT + 20, frame.last);
  line(&sink, "</svg>\n");
  return finish(&sink, error);
}
