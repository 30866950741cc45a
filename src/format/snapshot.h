/* Memory snapshots of torch (torch.cuda.memory._snapshot) as JSON: what python -m peakproof
 * cuda-snapshot writes, or the whole dictionary as json.dump writes it. */
#ifndef PP_FORMAT_SNAPSHOT_H
#define PP_FORMAT_SNAPSHOT_H

#include "format/model.h"

typedef struct pp_snapshot {
  size_t blocks, events;
  pp_caching_block *block; /* by address; of the common pools of one device */
  pp_caching_event *event; /* the trace, oldest first */
  char *settings;          /* PYTORCH_CUDA_ALLOC_CONF, or NULL */
  int64_t private_bytes;   /* in segments of private pools, which are left out */
} pp_snapshot;

/* bytes[size] must be 0. Free *snapshot with pp_snapshot_free. */
pp_status pp_snapshot_read(const uint8_t *bytes, size_t size, int64_t device, pp_snapshot *snapshot,
                           pp_notices *notices, pp_error *error);
void pp_snapshot_free(pp_snapshot *snapshot);

#endif
