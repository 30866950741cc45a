/* Live bytes before and after planning, as a picture. Lines differ by pattern, not only by colour;
 * long programs are drawn a column a pixel, by the largest step in it, so no peak is lost. */
#include <inttypes.h>
#include <string.h>

#include "format/json.h"
#include "report/timeline.h"

enum { WIDTH = 960, HEIGHT = 420, LEFT = 90, RIGHT = 940, TOP = 76, BOTTOM = 360 };

static const char head[] =
    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 420\" width=\"960\" "
    "height=\"420\" "
    "role=\"img\" aria-labelledby=\"t\">\n"
    "<style>\n"
    "svg{background:#fff;color:#1b1b1f;font:13px system-ui,sans-serif}\n"
    "text{fill:currentColor}.h{font-size:16px;font-weight:600}\n"
    ".grid{stroke:currentColor;stroke-opacity:.15}\n"
    ".before{fill:none;stroke:#a33c00;stroke-width:1.5;stroke-dasharray:5 3}\n"
    ".after{fill:#0b62c4;fill-opacity:.22;stroke:#0b62c4;stroke-width:1.5}\n"
    ".bound{stroke:currentColor;stroke-width:1.5;stroke-dasharray:1.5 3}\n"
    ".mark{fill:#0b62c4;stroke:none}\n"
    ".over{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}\n"
    "@media(prefers-color-scheme:dark){svg{background:#16171b;color:#e8e8ec}.over{stroke:#16171b}"
    ".before{stroke:#ff9d5c}.after{fill:#6db3ff;stroke:#6db3ff}.mark{fill:#6db3ff}}\n"
    "</style>\n";

/* Text with what XML reserves escaped; what XML or UTF-8 does not know becomes U+FFFD. */
static void escaped(pp_json *out, const char *text) {
  const unsigned char *c = (const unsigned char *)text;
  while (*c) {
    size_t length = pp_utf8_length(c);
    bool noncharacter = length == 3 && c[0] == 0xEF && c[1] == 0xBF && c[2] >= 0xBE;
    if (*c == '<' || *c == '&' || *c == '>' || *c == '"')
      pp_json_text(out, *c == '<' ? "&lt;" : *c == '&' ? "&amp;" : *c == '>' ? "&gt;" : "&quot;");
    else if (!length || *c < 0x20 || *c == 0x7F || noncharacter)
      pp_json_text(out, "\xEF\xBF\xBD");
    else
      pp_json_bytes(out, (const char *)c, length);
    c += length ? length : 1;
  }
}

static double y_of(int64_t bytes, int64_t top) {
  return BOTTOM - (top ? (double)bytes / (double)top * (BOTTOM - TOP) : 0);
}

static void number(pp_json *out, const char *text, double value) {
  char buffer[32];
  pp_json_text(out, text);
  snprintf(buffer, sizeof buffer, "%.1f", value);
  pp_json_text(out, buffer);
}

static void label(pp_json *out, double x, double y, const char *rest, const char *text) {
  number(out, "<text x=\"", x);
  number(out, "\" y=\"", y);
  pp_json_text(out, "\" ");
  pp_json_text(out, rest);
  pp_json_text(out, ">");
  escaped(out, text);
  pp_json_text(out, "</text>\n");
}

/* A staircase over the steps; closed along the bottom if it is to be filled. */
static void staircase(pp_json *out, const pp_timeline *timeline, int64_t top, bool fill) {
  pp_index columns = timeline->steps < RIGHT - LEFT ? timeline->steps : RIGHT - LEFT;
  pp_json_text(out, fill ? "<path class=\"after\" d=\"" : "<path class=\"before\" d=\"");
  number(out, "M", LEFT);
  number(out, " ",
         fill ? BOTTOM : y_of(columns ? pp_timeline_column(timeline, 0, columns) : 0, top));
  for (pp_index c = 0; c < columns; c++) {
    number(out, "V", y_of(pp_timeline_column(timeline, c, columns), top));
    number(out, "H", LEFT + (double)(c + 1) / columns * (RIGHT - LEFT));
  }
  if (fill)
    number(out, "V", BOTTOM);
  pp_json_text(out, fill ? "Z\"/>\n" : "\"/>\n");
}

static void line(pp_json *out, const char *class, double y) {
  pp_json_text(out, "<line class=\"");
  pp_json_text(out, class);
  number(out, "\" x1=\"", LEFT);
  number(out, "\" x2=\"", RIGHT);
  number(out, "\" y1=\"", y);
  number(out, "\" y2=\"", y);
  pp_json_text(out, "\"/>\n");
}

static void axes(pp_json *out, int64_t top, pp_index steps) {
  char text[PP_BYTES_TEXT];
  for (int i = 0; i <= 4; i++) {
    double y = BOTTOM - i * (BOTTOM - TOP) / 4.0;
    line(out, "grid", y);
    label(out, LEFT - 8, y + 4, "text-anchor=\"end\"",
          pp_bytes_short(text, (int64_t)((double)top * i / 4)));
  }
  label(out, LEFT, BOTTOM + 18, "", "step 0");
  snprintf(text, sizeof text, "%d steps", steps);
  label(out, RIGHT, BOTTOM + 18, "text-anchor=\"end\"", text);
}

static void mark_peak(pp_json *out, const pp_timeline *after, int64_t top) {
  char text[64];
  if (after->peak_step < 0)
    return;
  double x = LEFT + (after->peak_step + 0.5) / after->steps * (RIGHT - LEFT),
         y = y_of(after->peak, top);
  number(out, "<path class=\"mark\" d=\"M", x);
  number(out, " ", y - 1);
  pp_json_text(out, "l-6 -10h12z\"/>\n");
  snprintf(text, sizeof text, "peak, step %d", after->peak_step);
  bool left = x > (LEFT + RIGHT) / 2.0;
  label(out, left ? x - 10 : x + 10, y - 4,
        left ? "class=\"over\" text-anchor=\"end\"" : "class=\"over\"", text);
}

static void legend(pp_json *out, const pp_why *why, const pp_timeline *before,
                   const pp_timeline *after) {
  char text[160], bytes[PP_BYTES_TEXT];
  static const char *const sample[] = {
      "<path class=\"before\" d=\"M90 396h34\"/>\n",
      "<path class=\"after\" d=\"M370 402v-10h34v10z\"/>\n",
      "<line class=\"bound\" x1=\"640\" x2=\"674\" y1=\"396\" y2=\"396\"/>\n"};
  for (size_t i = 0; i < 3; i++)
    pp_json_text(out, sample[i]);
  snprintf(text, sizeof text, "before: peak %s", pp_bytes_short(bytes, before->peak));
  label(out, 132, 400, "", text);
  snprintf(text, sizeof text, "after: peak %s", pp_bytes_short(bytes, after->peak));
  label(out, 412, 400, "", text);
  snprintf(text, sizeof text, "lower bound %s%s",
           pp_bytes_short(bytes, pp_plan_lower_bound(why->plan)),
           pp_plan_optimal(why->plan) ? ": optimal" : "");
  label(out, 682, 400, "", text);
}

static void title(pp_json *out, const pp_why *why, const pp_timeline *before,
                  const pp_timeline *after) {
  char text[256];
  const char *slash = strrchr(why->path, '/');
  pp_json_text(out, "<title id=\"t\">Live bytes of ");
  escaped(out, why->name);
  snprintf(text, sizeof text,
           " over its steps: peak %" PRId64 " bytes before, %" PRId64 " after, bound %" PRId64
           "</title>\n",
           before->peak, after->peak, pp_plan_lower_bound(why->plan));
  pp_json_text(out, text);
  /* As many bytes as may fit; half a character at the cut is replaced. */
  snprintf(text, sizeof text, "%.80s, %.30s", slash ? slash + 1 : why->path, why->name);
  label(out, 20, 30, "class=\"h\"", text);
  snprintf(text, sizeof text, "bytes that exist while each step runs; %s (%s)",
           pp_plan_optimal(why->plan) ? "proved optimal" : "not proved optimal",
           pp_proof_name(pp_plan_proof(why->plan)));
  label(out, 20, 50, "", text);
}

pp_status pp_report_svg(const pp_why *why, pp_write *write, void *data, pp_error *error) {
  pp_timeline before, after = {0};
  pp_json out;
  pp_status status = pp_timeline_make(why->program, NULL, &before, error);
  if (!status)
    status = pp_timeline_make(why->program, pp_plan_order(why->plan), &after, error);
  if (!status) {
    int64_t top = before.peak > after.peak ? before.peak : after.peak;
    pp_json_begin(&out, write, data);
    pp_json_text(&out, head);
    title(&out, why, &before, &after);
    axes(&out, top, after.steps);
    staircase(&out, &after, top, true);
    staircase(&out, &before, top, false);
    line(&out, "bound", y_of(pp_plan_lower_bound(why->plan), top));
    mark_peak(&out, &after, top);
    legend(&out, why, &before, &after);
    pp_json_text(&out, "</svg>\n");
    status = pp_json_end(&out, error);
  }
  pp_timeline_free(&before);
  pp_timeline_free(&after);
  return status;
}
