/* Maximum flow with the minimum cut and the paths of the flow. */
#ifndef PP_FLOW_H
#define PP_FLOW_H

#include "memory.h"
#include "peakproof.h"

#define PP_FLOW_INFINITE INT64_MAX

struct pp_arc {
  pp_index to;
  int32_t next;     /* the next arc out of the same node, or -1 */
  int64_t residual; /* what can still be pushed */
  pp_index label;   /* the caller's, or -1; on both directions */
};

struct pp_flow_node {
  int32_t first, current; /* arcs, or -1 */
  int32_t level;          /* distance to the sink in the residual network, or -1 */
  pp_index label;         /* the caller's, or -1 */
};

/* Node 0 is the source, node 1 the sink. Arc 2k and its reverse 2k+1 are neighbours. Memory is kept
 * over resets. */
struct pp_flow {
  PP_VECTOR(struct pp_flow_node) nodes;
  PP_VECTOR(struct pp_arc) arcs;
  PP_VECTOR(int32_t) path; /* arcs */
  PP_VECTOR(pp_index) queue;
};

enum { PP_FLOW_SOURCE = 0, PP_FLOW_SINK = 1 };

/* Source and sink only. False when out of memory, here and below. */
bool pp_flow_reset(struct pp_flow *flow);
void pp_flow_free(struct pp_flow *flow);
/* Adds a node and stores its number. */
bool pp_flow_node(struct pp_flow *flow, pp_index label, pp_index *node);
bool pp_flow_arc(struct pp_flow *flow, pp_index from, pp_index to, int64_t capacity,
                 pp_index label);

/* Pushes `limit` more units from source to sink, or more, and adds them to *value. If fewer than
 * `limit` go through, the flow is maximum. Dinic (1970), without recursion. */
bool pp_flow_run(struct pp_flow *flow, int64_t limit, int64_t *value);
/* The same by preflows, for long networks; it may push more than `limit`. Needs the room that
 * pp_flow_run has made. */
bool pp_flow_push(struct pp_flow *flow, int64_t limit, int64_t *value);
/* After a maximum flow: level >= 0 becomes the source side of the largest minimum cut. */
bool pp_flow_largest_cut(struct pp_flow *flow);

/* To be called once before the paths are taken. */
void pp_flow_paths(struct pp_flow *flow);
/* Takes one path of the flow out of it: its arcs, from source to sink, stand in flow->path; *weight
 * is what it carried, 0 if no flow is left. Every node occurs once in it. */
bool pp_flow_take_path(struct pp_flow *flow, int64_t *weight);

#endif
