/* The reports of `peakproof remat`: text, JSON, SVG. */
#include "report/remat.h"

#include <inttypes.h>

#include "format/json.h"
#include "memory.h"

int64_t pp_remat_chosen_peak(const pp_remat_program *it) {
  return it->rewritten ? pp_plan_peak(it->rewritten) : pp_plan_peak(it->plan);
}

/* ---- Text ---- */

static double percent(int64_t part, int64_t whole) {
  return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* "0.193%", or a number where nothing is known to compare it with. */
static const char *macs_text(char text[40], const pp_remat *remat, int64_t extra) {
  if (pp_remat_macs(remat))
    snprintf(text, 40, "%.3f%%", percent(extra, pp_remat_macs(remat)));
  else
    snprintf(text, 40, "%" PRId64, extra);
  return text;
}

static void describe_plan(const pp_remat_program *it, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  fprintf(style->file, "  planned      %s, ", pp_bytes_text(text, pp_plan_peak(it->plan)));
  if (pp_plan_optimal(it->plan))
    fprintf(style->file, "proved optimal (%s)\n", pp_proof_name(pp_plan_proof(it->plan)));
  else
    fprintf(style->file, "not proved optimal: the bound is %s\n",
            pp_bytes_text(text, pp_plan_lower_bound(it->plan)));
}

static void describe_floor(const pp_remat_program *it, const pp_style *style) {
  char text[PP_BYTES_TEXT];
  pp_index statement;
  int64_t floor = pp_remat_floor(it->remat, &statement);
  if (!pp_remat_at_floor(it->remat)) {
    fprintf(style->file, "  floor        %s", pp_bytes_text(text, floor));
    if (statement >= 0)
      pp_print(style->file, ", what statement %d \"%s\" needs alone", statement,
               pp_program_statement(it->program, statement).name);
    fputc('\n', style->file);
    return;
  }
  fputs("  recomputation cannot help: ", style->file);
  if (statement >= 0)
    pp_print(style->file, "statement %d \"%s\" alone needs %s; only splitting it could", statement,
             pp_program_statement(it->program, statement).name, pp_bytes_text(text, floor));
  else
    fprintf(style->file, "%s exist from the start to the end", pp_bytes_text(text, floor));
  fputc('\n', style->file);
}

static void list_points(const pp_remat_program *it, const pp_style *style) {
  int64_t before = pp_plan_peak(it->plan);
  fputs("            peak    saved    extra macs   bytes written   runs  status\n", style->file);
  for (size_t i = 0; i < pp_remat_points(it->remat); i++) {
    pp_remat_point point = pp_remat_point_of(it->remat, i);
    char text[40];
    fprintf(style->file, "  %14" PRId64 "  %6.2f%%  %12s  %14" PRId64 "  %5zu  %s%s\n", point.peak,
            percent(before - point.peak, before), macs_text(text, it->remat, point.extra_macs),
            point.extra_bytes, point.extra_runs, pp_remat_status_name(point.status),
            i == it->chosen ? " *" : "");
  }
}

/* What the statuses say when nothing was found. */
static void describe_nothing(const pp_remat_program *it, const pp_style *style) {
  static const char *const claims[] = {
      "nothing was found that lowers the peak (heuristic)",
      "no recomputation in this order lowers the peak (exact for the order)",
      "no order and no recomputation within the caps lowers the peak (exact)"};
  fprintf(style->file, "  %s\n", claims[pp_remat_point_of(it->remat, 0).status]);
}

static void describe_chosen(const pp_remat_program *it, const pp_style *style) {
  char text[PP_BYTES_TEXT], macs[40];
  if (it->chosen == PP_NO_POINT || !it->rewriting)
    return;
  pp_remat_point point = pp_remat_point_of(it->remat, it->chosen);
  int64_t before = pp_plan_peak(it->plan), peak = pp_remat_chosen_peak(it);
  fprintf(style->file,
          "  chosen       %s, %.2f%% less, for %s more macs: %zu statements run again\n",
          pp_bytes_text(text, peak), percent(before - peak, before),
          macs_text(macs, it->remat, point.extra_macs), point.extra_runs);
  fprintf(style->file, "  lower bound  %s for the order of the rewritten program, %s\n",
          pp_bytes_text(text, pp_plan_lower_bound(it->rewritten)),
          pp_plan_optimal(it->rewritten) ? "proved optimal" : "not proved optimal");
}

static void describe_program(const pp_remat_report *report, size_t i, const pp_style *style) {
  const pp_remat_program *it = report->program + i;
  bool single = report->model->programs == 1;
  pp_print(style->file, "%s%s%s: %d statements, %d of them may run again", report->model->path,
           single ? "" : ", ", single ? "" : report->model->name[i],
           pp_program_statements(it->program), pp_remat_repeatable(it->remat));
  putc('\n', style->file);
  describe_plan(it, style);
  describe_floor(it, style);
  if (pp_remat_at_floor(it->remat))
    return;
  if (pp_remat_points(it->remat) == 1)
    describe_nothing(it, style);
  else if (report->curve || it->chosen == PP_NO_POINT)
    list_points(it, style);
  describe_chosen(it, style);
  if (pp_remat_limited(it->remat))
    fputs("  a limit or an interrupt cut the search short\n", style->file);
}

void pp_report_remat(const pp_remat_report *report, const pp_style *style) {
  int64_t peak = 0;
  char text[PP_BYTES_TEXT];
  for (size_t i = 0; i < report->model->programs; i++)
    if (report->program[i].remat) {
      describe_program(report, i, style);
      if (pp_remat_chosen_peak(report->program + i) > peak)
        peak = pp_remat_chosen_peak(report->program + i);
    }
  if (report->target_asked)
    fprintf(style->file, "  target       %s: %s\n", pp_bytes_text(text, report->target),
            peak <= report->target ? "reached" : "not reached");
}

/* ---- JSON ---- */

static void write_points(pp_json *json, const pp_remat_program *it) {
  pp_json_text(json, ", \"points\": [");
  for (size_t i = 0; i < pp_remat_points(it->remat); i++) {
    pp_remat_point point = pp_remat_point_of(it->remat, i);
    pp_json_key_integer(json, i ? ",\n    {\"peak\": " : "\n    {\"peak\": ", point.peak);
    pp_json_key_integer(json, ", \"extra_macs\": ", point.extra_macs);
    pp_json_key_integer(json, ", \"extra_bytes\": ", point.extra_bytes);
    pp_json_key_integer(json, ", \"extra_runs\": ", (int64_t)point.extra_runs);
    pp_json_key_string(json, ", \"status\": ", pp_remat_status_name(point.status));
    pp_json_text(json, "}");
  }
  pp_json_text(json, "]");
}

/* The statements of the rewriting that repeat an earlier one, in its planned order. */
static void write_again(pp_json *json, const pp_remat_program *it) {
  const pp_program *program = pp_rewriting_program(it->rewriting);
  const pp_index *statement = pp_rewriting_statements(it->rewriting);
  const pp_index *order = pp_plan_order(it->rewritten);
  bool any = false;
  bool *ran = pp_zalloc((size_t)pp_program_statements(it->program), sizeof *ran);
  pp_json_text(json, ", \"again\": [");
  for (pp_index i = 0; ran && i < pp_program_statements(program); i++) {
    pp_index v = statement[order[i]];
    if (ran[v]) {
      pp_json_key_integer(json, any ? ", {\"step\": " : "{\"step\": ", i);
      pp_json_key_integer(json, ", \"statement\": ", v);
      pp_json_key_string(json, ", \"name\": ", pp_program_statement(it->program, v).name);
      pp_json_text(json, "}");
      any = true;
    }
    ran[v] = true;
  }
  json->failed |= !ran;
  free(ran);
  pp_json_text(json, "]");
}

static void write_chosen(pp_json *json, const pp_remat_program *it) {
  if (it->chosen == PP_NO_POINT) {
    pp_json_text(json, ", \"chosen\": null");
    return;
  }
  const pp_plan *plan = it->rewritten ? it->rewritten : it->plan;
  pp_json_key_integer(json, ",\n   \"chosen\": {\"point\": ", (int64_t)it->chosen);
  pp_json_key_integer(json, ", \"peak\": ", pp_plan_peak(plan));
  pp_json_key_integer(json, ", \"lower_bound\": ", pp_plan_lower_bound(plan));
  pp_json_key_bool(json, ", \"optimal\": ", pp_plan_optimal(plan));
  pp_json_key_string(json, ", \"proof\": ", pp_proof_name(pp_plan_proof(plan)));
  if (it->rewriting)
    write_again(json, it);
  pp_json_text(json, "}");
}

static void write_program(pp_json *json, const pp_remat_report *report, size_t i) {
  const pp_remat_program *it = report->program + i;
  char seconds[32];
  pp_index statement;
  int64_t floor = pp_remat_floor(it->remat, &statement);
  pp_json_key_string(json, "{\"name\": ", report->model->name[i]);
  pp_json_key_integer(json, ", \"statements\": ", pp_program_statements(it->program));
  pp_json_key_integer(json, ", \"repeatable\": ", pp_remat_repeatable(it->remat));
  pp_json_key_integer(json, ", \"macs\": ", pp_remat_macs(it->remat));
  pp_json_key_integer(json, ", \"peak_planned\": ", pp_plan_peak(it->plan));
  pp_json_key_integer(json, ", \"lower_bound\": ", pp_plan_lower_bound(it->plan));
  pp_json_key_bool(json, ", \"optimal\": ", pp_plan_optimal(it->plan));
  pp_json_key_integer(json, ", \"floor\": ", floor);
  if (statement >= 0) {
    pp_json_key_integer(json, ", \"floor_statement\": ", statement);
    pp_json_key_string(
        json, ", \"floor_statement_name\": ", pp_program_statement(it->program, statement).name);
  }
  pp_json_key_bool(json, ", \"can_help\": ", !pp_remat_at_floor(it->remat));
  write_points(json, it);
  write_chosen(json, it);
  snprintf(seconds, sizeof seconds, "%.6f", pp_remat_seconds(it->remat));
  pp_json_text(json, ", \"seconds\": ");
  pp_json_text(json, seconds);
  pp_json_key_integer(json, ", \"states\": ", pp_remat_states(it->remat));
  pp_json_key_bool(json, ", \"limited\": ", pp_remat_limited(it->remat));
  pp_json_text(json, "}");
}

pp_status pp_report_remat_json(const pp_remat_report *report, pp_write *write, void *data,
                               pp_error *error) {
  pp_json json;
  bool any = false;
  int64_t planned = 0, chosen = 0;
  for (size_t i = 0; i < report->model->programs; i++) {
    const pp_remat_program *it = report->program + i;
    if (!it->remat)
      continue;
    planned = pp_plan_peak(it->plan) > planned ? pp_plan_peak(it->plan) : planned;
    chosen = pp_remat_chosen_peak(it) > chosen ? pp_remat_chosen_peak(it) : chosen;
  }
  pp_json_begin(&json, write, data);
  pp_json_key_string(&json, "{\"model\": ", report->model->path);
  pp_json_key_integer(&json, ", \"peak_planned\": ", planned);
  pp_json_key_integer(&json, ", \"peak_chosen\": ", chosen);
  if (report->target_asked) {
    pp_json_key_integer(&json, ", \"target\": {\"bytes\": ", report->target);
    pp_json_key_bool(&json, ", \"reached\": ", chosen <= report->target);
    pp_json_text(&json, "}");
  }
  pp_json_text(&json, ",\n \"programs\": [");
  for (size_t i = 0; i < report->model->programs; i++)
    if (report->program[i].remat) {
      pp_json_text(&json, any ? ",\n  " : "\n  ");
      write_program(&json, report, i);
      any = true;
    }
  pp_json_text(&json, "]}\n");
  return pp_json_end(&json, error);
}

/* ---- SVG ---- */

enum { WIDTH = 720, HEIGHT = 400, LEFT = 110, RIGHT = 24, TOP = 40, BOTTOM = 56 };

struct picture {
  pp_json *out; /* text goes through its buffer */
  const pp_remat *remat;
  int64_t low, high, most; /* peaks shown; extra macs or, if none has any, extra bytes */
  bool bytes;
};

static int64_t cost_of(const struct picture *picture, pp_remat_point point) {
  return picture->bytes ? point.extra_bytes : point.extra_macs;
}

static double x_of(const struct picture *picture, int64_t cost) {
  double share = picture->most ? (double)cost / (double)picture->most : 0;
  return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct picture *picture, int64_t peak) {
  double range = picture->high > picture->low ? (double)(picture->high - picture->low) : 1;
  return TOP + (double)(picture->high - peak) / range * (HEIGHT - TOP - BOTTOM);
}

/* XML text: the characters that mean something in it. */
static void escape(pp_json *out, const char *text) {
  for (; *text; text++) {
    if (*text == '<')
      pp_json_text(out, "&lt;");
    else if (*text == '&')
      pp_json_text(out, "&amp;");
    else if (*text == '"')
      pp_json_text(out, "&quot;");
    else
      pp_json_bytes(out, (unsigned char)*text < ' ' || *text == 127 ? "?" : text, 1);
  }
}

static void label(struct picture *picture, double x, double y, const char *anchor,
                  const char *text) {
  char line[160];
  snprintf(line, sizeof line, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
  pp_json_text(picture->out, line);
  escape(picture->out, text);
  pp_json_text(picture->out, "</text>\n");
}

static void draw_axes(struct picture *picture, const char *title, int64_t floor) {
  char text[160], bytes[PP_BYTES_TEXT];
  snprintf(text, sizeof text, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#888\"/>\n", LEFT,
           TOP, HEIGHT - BOTTOM, WIDTH - RIGHT);
  pp_json_text(picture->out, text);
  label(picture, LEFT, 20, "start", title);
  for (int i = 0; i <= 4; i++) {
    int64_t peak = picture->low + (picture->high - picture->low) / 4 * i;
    snprintf(text, sizeof text, "%" PRId64, peak);
    label(picture, LEFT - 8, y_of(picture, peak) + 4, "end", text);
    if (pp_remat_macs(picture->remat) && !picture->bytes)
      snprintf(text, sizeof text, "%.3g%%",
               percent(picture->most, pp_remat_macs(picture->remat)) * i / 4);
    else
      snprintf(text, sizeof text, "%" PRId64, picture->most / 4 * i);
    label(picture, x_of(picture, picture->most / 4 * i), HEIGHT - BOTTOM + 18, "middle", text);
  }
  label(picture, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 14, "middle",
        picture->bytes ? "extra bytes written" : "extra multiply-accumulates");
  snprintf(text, sizeof text, "peak in bytes (floor: %s)", pp_bytes_text(bytes, floor));
  label(picture, WIDTH - RIGHT, 20, "end", text);
}

static void draw_curve(struct picture *picture) {
  char text[256];
  for (size_t i = 0; i < pp_remat_points(picture->remat); i++) {
    pp_remat_point point = pp_remat_point_of(picture->remat, i);
    double x = x_of(picture, cost_of(picture, point)), y = y_of(picture, point.peak);
    if (i)
      snprintf(text, sizeof text, "H%.1fV%.1f", x, y);
    else
      snprintf(text, sizeof text,
               "<path fill=\"none\" stroke=\"#06c\" stroke-width=\"2\" d=\"M%.1f %.1f", x, y);
    pp_json_text(picture->out, text);
  }
  snprintf(text, sizeof text, "H%d\"/>\n", WIDTH - RIGHT);
  pp_json_text(picture->out, text);
  for (size_t i = 0; i < pp_remat_points(picture->remat); i++) {
    pp_remat_point point = pp_remat_point_of(picture->remat, i);
    snprintf(text, sizeof text,
             "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\"><title>%" PRId64
             " bytes, %" PRId64 " macs, %zu runs, %s</title></circle>\n",
             x_of(picture, cost_of(picture, point)), y_of(picture, point.peak),
             point.status == PP_REMAT_HEURISTIC ? "#fff\" stroke=\"#06c" : "#06c", point.peak,
             point.extra_macs, point.extra_runs, pp_remat_status_name(point.status));
    pp_json_text(picture->out, text);
  }
}

pp_status pp_report_remat_svg(const pp_remat_program *it, const char *title, pp_write *write,
                              void *data, pp_error *error) {
  pp_json json;
  char text[256];
  size_t points = pp_remat_points(it->remat);
  pp_remat_point first = pp_remat_point_of(it->remat, 0),
                 last = pp_remat_point_of(it->remat, points - 1);
  struct picture picture = {.out = &json,
                            .remat = it->remat,
                            .low = last.peak,
                            .high = first.peak,
                            .bytes = !last.extra_macs};
  picture.most = cost_of(&picture, last);
  pp_json_begin(&json, write, data);
  snprintf(text, sizeof text,
           "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
           "font-family=\"sans-serif\" font-size=\"12\">\n"
           "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
           WIDTH, HEIGHT, WIDTH, HEIGHT);
  pp_json_text(&json, text);
  draw_axes(&picture, title, pp_remat_floor(it->remat, NULL));
  draw_curve(&picture);
  pp_json_text(&json, "</svg>\n");
  return pp_json_end(&json, error);
}
