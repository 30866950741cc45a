/* Bars of live bytes over the steps, for a terminal. */
#include "report/timeline.h"

enum { ROWS = 6, LABEL = 13, WIDEST = 4 };

/* The character of a column in a row: eighths of a full block, or whole characters. */
static void cell(const pp_style *style, bool unicode, int64_t bytes, int64_t peak, int row) {
  static const char *const block[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                      "\u2585", "\u2586", "\u2587", "\u2588"};
  double height = peak ? (double)bytes / (double)peak * ROWS - row : 0;
  if (!unicode)
    fputc(height >= 0.5 ? '#' : height > 0 && !row ? '.' : ' ', style->file);
  else
    fputs(block[height >= 1 ? 8 : height <= 0 ? 0 : (int)(height * 8)], style->file);
}

void pp_report_bar(const pp_timeline *timeline, const pp_style *style, int width, bool unicode) {
  char text[PP_BYTES_TEXT];
  pp_index room = width > LABEL + 12 ? width - LABEL - 1 : 10;
  if (timeline->peak_step < 0 || !timeline->peak)
    return;
  pp_index columns = timeline->steps < room ? timeline->steps : room;
  int wide = room / columns < WIDEST ? room / columns : WIDEST;
  /* The column whose steps include the peak: the last one that begins at or before it. */
  pp_index marked = 0;
  while (marked + 1 < columns &&
         (int64_t)timeline->steps * (marked + 1) / columns <= timeline->peak_step)
    marked++;
  for (int row = ROWS - 1; row >= 0; row--) {
    fprintf(style->file, "  %9s |",
            row == ROWS - 1 ? pp_bytes_short(text, timeline->peak)
            : row           ? ""
                            : "0 B");
    for (pp_index c = 0; c < columns; c++) {
      if (style->color && c == marked)
        fputs("\033[33m", style->file);
      for (int i = 0; i < wide; i++)
        cell(style, unicode, pp_timeline_column(timeline, c, columns), timeline->peak, row);
      if (style->color && c == marked)
        fputs("\033[0m", style->file);
    }
    fputc('\n', style->file);
  }
  int place = LABEL + marked * wide;
  int length = snprintf(text, sizeof text, "peak, step %d", timeline->peak_step);
  if (place + 2 + length <= width || place < length + 2)
    fprintf(style->file, "%*s^ %s\n", place, "", text);
  else
    fprintf(style->file, "%*s%s ^\n", place - length - 1, "", text);
}
