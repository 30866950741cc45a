/* Curves: Pareto sets of (peak, cost) with their sequences. */
#include <string.h>

#include "remat.h"

void pp_front_free(struct pp_remat_front *front) {
  for (size_t i = 0; i < front->entry.count; i++)
    pp_sequence_free(&front->entry.items[i].sequence);
  free(front->entry.items);
  *front = (struct pp_remat_front){0};
}

/* The entries fall in peak and rise in cost: of those within a peak the first is the cheapest. */
bool pp_front_covers(const struct pp_remat_front *front, struct pp_remat_label label) {
  for (size_t i = 0; i < front->entry.count; i++)
    if (pp_label_covers(front->entry.items[i].label, label))
      return true;
  return false;
}

bool pp_front_add(struct pp_remat_front *front, struct pp_remat_label label,
                  struct pp_sequence *sequence) {
  if (pp_front_covers(front, label))
    return true;
  if (!PP_ROOM(&front->entry))
    return false;
  struct pp_remat_entry *entry = front->entry.items;
  size_t kept = 0, place = 0;
  for (size_t i = 0; i < front->entry.count; i++) {
    if (pp_label_covers(label, entry[i].label)) {
      pp_sequence_free(&entry[i].sequence);
      continue;
    }
    entry[kept++] = entry[i];
    if (entry[kept - 1].label.peak > label.peak)
      place = kept;
  }
  memmove(entry + place + 1, entry + place, (kept - place) * sizeof *entry);
  entry[place] = (struct pp_remat_entry){label, *sequence};
  *sequence = (struct pp_sequence){0};
  front->entry.count = kept + 1;
  return true;
}
