/* peakproof.h - the public interface of the peakproof core (C11, no dependency).
 *
 * Give it a program; get an order of its statements whose peak memory is proved lowest, and a proof
 * that a stranger can check.
 *
 *   #include <peakproof.h>
 *
 *   pp_error error;
 *   pp_program *program = pp_program_new(&error);
 *   pp_index a, b;
 *   pp_program_add_storage(program, "x", 4096, PP_LIVE_IN, &a, &error);
 *   pp_program_add_storage(program, "y", 1024, PP_LIVE_OUT, &b, &error);
 *   pp_program_add_statement(program, "conv", &error);
 *   pp_program_add_access(program, a, PP_WHOLE, PP_WHOLE, PP_READ, &error);
 *   pp_program_add_access(program, b, PP_WHOLE, PP_WHOLE, PP_WRITE | PP_OVERWRITE, &error);
 *   if (pp_program_finish(program, &error)) ...  error.message says what is wrong
 *
 *   pp_plan *plan;
 *   if (pp_solve(program, NULL, &plan, &error) == PP_OK)
 *     printf("%" PRId64 " of %" PRId64 "\n", pp_plan_peak(plan), pp_plan_lower_bound(plan));
 *   pp_plan_free(plan);
 *   pp_program_free(program);
 *
 * Words. A *program* is a list of statements in the order in which a compiler emitted them and a
 * set of storages. A *storage* is one block of memory, however many names it has. A statement reads
 * and writes storages and may need *work* bytes that exist only while it runs. A storage is
 * allocated just before the first statement that accesses it and freed just after the last one. Two
 * statements that access a common byte, at least one of them writing, keep their original relative
 * order; so does every pair given to pp_program_add_order. An order that respects this is *legal*.
 * (THEORY.md section 1.)
 *
 * Conventions. Every size is a number of bytes in int64_t, and no sum that leaves int64_t is
 * accepted. Functions that can fail return a pp_status and, if `error` is not NULL, fill it in. On
 * failure nothing is returned through other pointers, and what was given keeps its owner. Nothing
 * here keeps global state: different handles may be used by different threads at the same time. A
 * finished program is never modified, so many threads may read one. Results depend on the input
 * alone, unless a time limit or an interrupt cut the work short; pp_plan_limited() then says so. */
#ifndef PEAKPROOF_H
#define PEAKPROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PP_VERSION "0.1.0"

/* ---- Errors ---------------------------------------------------------------------------------- */

/* Values are part of the interface: they are never renumbered. */
typedef enum pp_status {
  PP_OK = 0,
  PP_ERROR_USAGE = 1,    /* a call out of order, or an argument out of range */
  PP_ERROR_INPUT = 2,    /* the input is wrong */
  PP_ERROR_OVERFLOW = 3, /* a sum of bytes leaves int64_t, or an index leaves int32_t */
  PP_ERROR_READ = 4,     /* a file cannot be opened or read */
  PP_ERROR_CREATE = 5,   /* a file cannot be created */
  PP_ERROR_IO = 6,       /* writing failed */
  PP_ERROR_MEMORY = 7,   /* out of memory */
  PP_ERROR_INTERNAL = 8  /* our bug: please report it */
} pp_status;

/* What went wrong and where. Positions that do not apply are -1. */
typedef struct pp_error {
  pp_status status;
  int64_t line;   /* text input: 1-based */
  int64_t column; /* text input: 1-based, in bytes */
  int64_t offset; /* binary input: 0-based byte */
  char message[256];
} pp_error;

/* The symbolic name of a status ("PP_ERROR_INPUT"). Never NULL; static. */
const char *pp_status_name(pp_status status);

/* The version of the library that is linked, as PP_VERSION. */
const char *pp_version(void);

/* ---- Programs -------------------------------------------------------------------------------- */

/* Statements and storages are numbered from 0 in the order in which they are added. */
typedef int32_t pp_index;

typedef struct pp_program pp_program;

enum { PP_LIVE_IN = 1, PP_LIVE_OUT = 2 }; /* storage flags */
enum {
  PP_READ = 1,
  PP_WRITE = 2,
  PP_OVERWRITE = 4
}; /* access flags; PP_OVERWRITE needs PP_WRITE */

/* As `from` and `to` of an access: the whole storage, whatever its size. */
#define PP_WHOLE ((int64_t)-1)

/* The multiply-accumulates of a statement are not known. */
#define PP_MACS_UNKNOWN ((int64_t)-1)

/* A new, empty program; NULL when out of memory. Free it with pp_program_free (NULL is allowed). */
pp_program *pp_program_new(pp_error *error);
void pp_program_free(pp_program *program);

/* All pp_program_add_* and pp_program_set_* copy what they are given, and are errors
 * (PP_ERROR_USAGE) after pp_program_finish. Names are UTF-8 and may be NULL (unnamed). `id` may be
 * NULL. */
pp_status pp_program_set_name(pp_program *program, const char *name, pp_error *error);
pp_status pp_program_add_storage(pp_program *program, const char *name, int64_t bytes,
                                 unsigned flags, pp_index *id, pp_error *error);
/* Starts the next statement; what follows applies to it until the next call. It has work 0, is not
 * pure, and its macs and line are unknown until set. */
pp_status pp_program_add_statement(pp_program *program, const char *name, pp_error *error);
/* The current statement accesses bytes from <= b < to of a storage that was added before or will be
 * added before pp_program_finish; PP_WHOLE for both: all of it. Two accesses of one storage are
 * independent only if both give ranges and these are disjoint. A write may also read, unless
 * PP_OVERWRITE says that it certainly does not. May be called several times for one storage. */
pp_status pp_program_add_access(pp_program *program, pp_index storage, int64_t from, int64_t to,
                                unsigned flags, pp_error *error);
/* Adds one request of `bytes` that exists only while the current statement runs. Requests of one
 * statement exist at the same time: its work is their sum. */
pp_status pp_program_add_work(pp_program *program, int64_t bytes, pp_error *error);
pp_status pp_program_set_macs(pp_program *program, int64_t macs, pp_error *error);
pp_status pp_program_set_pure(pp_program *program, bool pure, pp_error *error);
pp_status pp_program_set_line(pp_program *program, int64_t line, pp_error *error);
/* Statement `before` must run before statement `after`; before < after. */
pp_status pp_program_add_order(pp_program *program, pp_index before, pp_index after,
                               pp_error *error);
/* Checks the whole, derives the dependence graph, and makes the program ready for use and
 * immutable. Near-linear in the accesses, except that n disjoint partial writes followed by m whole
 * reads are n*m dependences. */
pp_status pp_program_finish(pp_program *program, pp_error *error);

/* Reading a program back. Strings and arrays belong to the program. Names are "" where none was
 * given. */
pp_index pp_program_statements(const pp_program *program);
pp_index pp_program_storages(const pp_program *program);
const char *pp_program_name(const pp_program *program);

typedef struct pp_storage_info {
  const char *name;
  int64_t bytes;
  unsigned flags;
} pp_storage_info;
pp_storage_info pp_program_storage(const pp_program *program, pp_index storage);

typedef struct pp_access {
  pp_index storage;
  unsigned flags;
  int64_t from, to; /* PP_WHOLE, PP_WHOLE: all */
} pp_access;
typedef struct pp_statement_info {
  const char *name;
  int64_t work; /* the sum of the requests */
  int64_t macs; /* or PP_MACS_UNKNOWN */
  int64_t line; /* or -1 */
  bool pure;
  size_t accesses;
  const pp_access *access; /* in the order in which they were added */
  size_t requests;
  const int64_t *request; /* the single requests of work */
} pp_statement_info;
pp_statement_info pp_program_statement(const pp_program *program, pp_index statement);

/* The order pairs as given: pair[2*i] before pair[2*i+1]. */
size_t pp_program_orders(const pp_program *program, const pp_index **pair);
/* The direct predecessors (successors) of a statement in the dependence graph, ascending. The graph
 * leaves out dependences that follow from others through a third access of the same bytes. */
size_t pp_program_predecessors(const pp_program *program, pp_index statement, const pp_index **out);
size_t pp_program_successors(const pp_program *program, pp_index statement, const pp_index **out);
/* The distinct storages that a statement accesses (the distinct statements that access a storage),
 * ascending. */
size_t pp_program_accessed(const pp_program *program, pp_index statement, const pp_index **out);
size_t pp_program_accessors(const pp_program *program, pp_index storage, const pp_index **out);

/* ---- Orders ---------------------------------------------------------------------------------- */

/* Runs the statements in `order` (all n of them; NULL: the original order) and stores
 * the peak in bytes in *peak. If `step` is not NULL it holds n values: step[i] receives the bytes
 * that exist while the i-th statement of the order runs. If `between` is not NULL it holds n+1
 * values: the bytes that exist before step i, and after the last one. PP_ERROR_INPUT if the order
 * is not legal. O(accesses). */
pp_status pp_simulate(const pp_program *program, const pp_index *order, int64_t *peak,
                      int64_t *step, int64_t *between, pp_error *error);
/* For every storage the steps of the order that access it first and last (n =
 * pp_program_statements): first[s] is -1 if it exists before step 0, last[s] is n if it exists
 * after step n-1; first[s] = last[s] = -1, unless both live in and out, for a storage that nothing
 * accesses. The order must be legal. */
pp_status pp_lifetimes(const pp_program *program, const pp_index *order, pp_index *first,
                       pp_index *last, pp_error *error);
/* max over statements of work + sizes of accessed storages + storages that are both live in and
 * out: no order and no recomputation of whole statements goes below it. *statement (if not NULL)
 * receives the statement that sets it, or -1 if there is none. THEORY.md section 4. */
int64_t pp_floor(const pp_program *program, pp_index *statement);

/* ---- Solving --------------------------------------------------------------------------------- */

typedef struct pp_plan pp_plan;

/* How the lower bound is proved; the simplest that holds. */
typedef enum pp_proof_kind {
  PP_PROOF_NONE = 0,
  PP_PROOF_FLOOR = 1,
  PP_PROOF_FORWARD_TRAP = 2,
  PP_PROOF_REVERSE_TRAP = 3,
  PP_PROOF_PROBING = 4, /* a trap behind edges that every lower order respects */
  PP_PROOF_SEARCH = 5
} pp_proof_kind;
/* "none", "floor", "forward-trap", "reverse-trap", "probing", "search". */
const char *pp_proof_name(pp_proof_kind kind);

typedef struct pp_progress {
  int64_t peak;        /* of the best order so far */
  int64_t lower_bound; /* proved so far */
  double seconds;      /* since pp_solve began */
  int64_t states;      /* of the exact search, so far */
} pp_progress;

typedef struct pp_options {
  double time_limit;   /* seconds; 0: none */
  int64_t state_limit; /* states that the exact search may hold; 0: the default */
  int threads;         /* 0 or 1: one */
  /* Called now and then, if not NULL; return true to stop with the best so far. */
  bool (*progress)(const pp_progress *progress, void *data);
  void *data;
} pp_options;

/* Finds an order of low peak and a proved lower bound (THEORY.md sections 2 and 3). `options` may
 * be NULL. Reaching a limit is not an error: the plan then holds the best order and bound so far.
 * The plan refers to the program, which must outlive it. Free it with pp_plan_free. */
pp_status pp_solve(const pp_program *program, const pp_options *options, pp_plan **plan,
                   pp_error *error);
void pp_plan_free(pp_plan *plan);

const pp_index *pp_plan_order(const pp_plan *plan); /* all statements */
int64_t pp_plan_peak_before(const pp_plan *plan);   /* of the original order */
int64_t pp_plan_peak(const pp_plan *plan);          /* of the order found */
int64_t pp_plan_lower_bound(const pp_plan *plan);   /* proved, with a certificate */
bool pp_plan_optimal(const pp_plan *plan);          /* peak == lower bound */
/* What the search knows but no certificate holds yet: at least pp_plan_lower_bound. */
int64_t pp_plan_searched_bound(const pp_plan *plan);
pp_proof_kind pp_plan_proof(const pp_plan *plan);
bool pp_plan_limited(const pp_plan *plan); /* a limit or an interrupt cut the work short */
double pp_plan_seconds(const pp_plan *plan);
int64_t pp_plan_states(const pp_plan *plan); /* of the exact search */

/* ---- Certificates ---------------------------------------------------------------------------- */

/* Receives `size` bytes of text; returns false to stop (the call then fails with PP_ERROR_IO). */
typedef bool pp_write(const void *bytes, size_t size, void *data);

/* Writes the certificate of a plan (doc/certificate.md). sha256 is the SHA-256 of the program's
 * JSON file as 64 lower-case hexadecimal digits: the certificate is about that file. */
pp_status pp_certificate_write(const pp_plan *plan, const char *sha256, pp_write *write, void *data,
                               pp_error *error);

/* ---- Arenas ---------------------------------------------------------------------------------- */

/* A buffer lives from time first to time last, both included; first <= last, bytes >= 0. */
typedef struct pp_buffer {
  int64_t bytes, first, last;
} pp_buffer;

typedef struct pp_arena pp_arena;

/* How the lower bound of an arena is proved. */
typedef enum pp_arena_proof {
  PP_ARENA_LOAD = 1,  /* that many bytes (each buffer rounded up to the alignment, but for the one
                         on top) live at the same time: simple addition */
  PP_ARENA_SEARCH = 2 /* an exhaustive search found no smaller arena; no certificate is written */
} pp_arena_proof;

typedef struct pp_arena_progress {
  int64_t bytes;       /* of the best arena so far */
  int64_t lower_bound; /* proved so far */
  double seconds;      /* since pp_arena_solve began */
  int64_t nodes;       /* of the exact search, so far */
} pp_arena_progress;

typedef struct pp_arena_options {
  int64_t alignment;  /* of every offset; 0: 1 */
  int64_t capacity;   /* any arena of so many bytes will do, and it is enough to know that there is
                         none; 0: the smallest one is wanted */
  int64_t node_limit; /* of the exact search; 0: the default; -1: heuristics only */
  double time_limit;  /* seconds; 0: none */
  /* Called now and then, if not NULL; return true to stop with the best so far. */
  bool (*progress)(const pp_arena_progress *progress, void *data);
  void *data;
} pp_arena_options;

/* Finds an offset for every buffer so that buffers that live at the same time share no byte and the
 * arena, the largest offset + bytes, is small; and a lower bound that no arena goes below. Buffers
 * of 0 bytes get offset 0. Reaching a limit is not an error. The result depends on the input alone
 * unless a time limit or an interrupt cut the work short. Near-linear until the exact search
 * begins, which is left out when there are too many buffers for it. PP_ERROR_OVERFLOW if no arena
 * below 2^63 bytes exists or none was found. `options` may be NULL. Free the arena with
 * pp_arena_free. THEORY.md section 5, doc/arena.md. */
pp_status pp_arena_solve(const pp_buffer *buffer, size_t buffers, const pp_arena_options *options,
                         pp_arena **arena, pp_error *error);
void pp_arena_free(pp_arena *arena);
const int64_t *pp_arena_offsets(const pp_arena *arena); /* one a buffer */
int64_t pp_arena_bytes(const pp_arena *arena);
int64_t pp_arena_load(const pp_arena *arena); /* the largest sum of bytes that live together */
int64_t pp_arena_lower_bound(const pp_arena *arena);
bool pp_arena_optimal(const pp_arena *arena); /* bytes == lower bound */
pp_arena_proof pp_arena_proved_by(const pp_arena *arena);
bool pp_arena_limited(const pp_arena *arena); /* a limit or an interrupt cut the work short */
double pp_arena_seconds(const pp_arena *arena);
int64_t pp_arena_nodes(const pp_arena *arena);

/* The planners that runtimes use, as baselines: both take the largest buffer first. O(n^2). */
typedef enum pp_planner {
  PP_PLANNER_TFLM = 1,  /* TFLM's greedy planner: lowest gap, sizes rounded up to the alignment */
  PP_PLANNER_LITERT = 2 /* LiteRT's arena planner: buffers that live always first, smallest gap */
} pp_planner;
/* offset[i] >= 0 on entry fixes the offset of buffer i (TFLM's offline plan); -1 lets the planner
 * choose. PP_ERROR_OVERFLOW if an end leaves int64_t. */
pp_status pp_arena_greedy(const pp_buffer *buffer, size_t buffers, int64_t alignment,
                          pp_planner planner, int64_t *offset, int64_t *bytes, pp_error *error);

/* Checks offsets: none negative or misaligned, no byte shared in time. Stores the arena's bytes (if
 * not NULL), or says which two buffers clash (PP_ERROR_INPUT). O(n log n). */
pp_status pp_arena_check(const pp_buffer *buffer, size_t buffers, int64_t alignment,
                         const int64_t *offset, int64_t *bytes, pp_error *error);

/* Arena and order together. Orders of one peak differ in how well their buffers can be packed. */

/* The buffers of a program in an order (NULL: the original one), with steps as times: number s is
 * storage s, number m + v the work of statement v. What needs no memory has 0 bytes. `buffer`
 * receives m + n. PP_ERROR_INPUT if the order is not legal. */
pp_status pp_arena_buffers(const pp_program *program, const pp_index *order, pp_buffer *buffer,
                           pp_error *error);

typedef struct pp_refinement {
  int64_t orders; /* that were packed, the plan's own included */
  bool all;       /* these were all orders with a peak as low as the plan's, each packed exactly */
  bool changed;   /* the plan has another order now */
} pp_refinement;

/* Packs the plan's order (buffers as above). If the arena is above the plan's peak, aligned, tries
 * other orders of at most that peak, at most `orders` of them (0: the default): all, if they are
 * few, or else a walk from order to order. The plan then has the one with the smallest arena found;
 * its bound and its certificate hold for that one too. PP_ERROR_USAGE for a capacity. */
pp_status pp_arena_refine(pp_plan *plan, const pp_arena_options *options, int64_t orders,
                          pp_refinement *refinement, pp_arena **arena, pp_error *error);

/* ---- Recomputation --------------------------------------------------------------------------- */

/* When the lowest peak of any order is still too high: drop a value and make it again, by the chain
 * of statements that makes it, before a late use (THEORY.md section 4, doc/remat.md). Only pure
 * statements with known macs run again, into fresh storages, from bytes that are the same as the
 * first time. */
typedef struct pp_remat pp_remat;

/* What is known of a point of the curve. */
typedef enum pp_remat_status {
  PP_REMAT_HEURISTIC = 0,   /* found, not proved best */
  PP_REMAT_EXACT_ORDER = 1, /* first runs in the planned order: none with a peak as low costs less,
                               and none as cheap has a lower peak */
  PP_REMAT_EXACT = 2        /* the same of all orders and all repetitions */
} pp_remat_status;
/* "heuristic", "exact-order", "exact". */
const char *pp_remat_status_name(pp_remat_status status);

typedef struct pp_remat_options {
  pp_options solve;       /* time_limit and state_limit are for all of the work; states are those of
                             the exact methods, and the default is meant for seconds */
  int32_t cap;            /* how often a statement may run; 0: 2 */
  const int32_t *caps;    /* or, if not NULL, of each statement (at least 1) */
  int64_t max_extra_macs; /* no point that costs more is wanted; negative: any */
} pp_remat_options;

/* A point: what the runs beyond the first of each statement cost, and the peak that they allow. */
typedef struct pp_remat_point {
  int64_t peak;
  int64_t extra_macs;
  int64_t extra_bytes; /* written by the extra runs: elementwise work has no macs */
  size_t extra_runs;
  pp_remat_status status;
} pp_remat_point;

/* Looks for the curve of (peak, extra cost) from a plan of the program. Point 0 has no extra run
 * and the plan's peak. If that is the floor nothing else is tried: no order and no recomputation of
 * whole statements goes below it (pp_remat_floor). `options` may be NULL. */
pp_status pp_remat_solve(const pp_program *program, const pp_plan *plan,
                         const pp_remat_options *options, pp_remat **remat, pp_error *error);
void pp_remat_free(pp_remat *remat);

/* The floor, whether it is the plan's peak, and the statement that sets it (or -1). */
bool pp_remat_at_floor(const pp_remat *remat);
int64_t pp_remat_floor(const pp_remat *remat, pp_index *statement);
/* Peaks fall and costs (macs, then bytes) rise from point to point; at least one point. */
size_t pp_remat_points(const pp_remat *remat);
pp_remat_point pp_remat_point_of(const pp_remat *remat, size_t point);
/* Sums over the program: of macs, and how many statements may run again. */
int64_t pp_remat_macs(const pp_remat *remat);
pp_index pp_remat_repeatable(const pp_remat *remat);
bool pp_remat_limited(const pp_remat *remat); /* a limit or an interrupt cut the work short */
double pp_remat_seconds(const pp_remat *remat);
int64_t pp_remat_states(const pp_remat *remat); /* of the exact methods */

/* A point as a program like any other: to be planned, certified and realized. */
typedef struct pp_rewriting pp_rewriting;
pp_status pp_remat_rewrite(const pp_remat *remat, size_t point, pp_rewriting **rewriting,
                           pp_error *error);
void pp_rewriting_free(pp_rewriting *rewriting);
/* In its original order it has the point's peak. Storages below pp_program_storages() of the
 * original are the original ones, with their flags. Names of what is added end in ~1, ~2, ... */
const pp_program *pp_rewriting_program(const pp_rewriting *rewriting);
/* The original statement (storage) that each statement (storage) repeats. */
const pp_index *pp_rewriting_statements(const pp_rewriting *rewriting);
const pp_index *pp_rewriting_storages(const pp_rewriting *rewriting);

/* ---- The CUDA caching allocator -------------------------------------------------------------- */

/* A model of PyTorch's caching allocator: what a GPU really reserves for an order is not what its
 * storages request. Deterministic: equal calls give equal results. doc/caching.md has the rules,
 * their source, and what is not modelled (streams that share blocks, private pools of graphs). */

enum { PP_CACHING_DIVISIONS = 16 };

typedef struct pp_caching_config {
  /* Constants. Bytes; names as in c10. */
  int64_t min_block;    /* kMinBlockSize: sizes are multiples of it */
  int64_t small_size;   /* kSmallSize: the largest small request */
  int64_t small_buffer; /* kSmallBuffer: the segments of small requests */
  int64_t large_buffer; /* large_segment_size: the segments of requests below min_large */
  int64_t min_large;    /* kMinLargeAlloc: from here on a request gets a segment of its own */
  int64_t round_large;  /* kRoundLarge: which is a multiple of this */
  /* Settings, as PYTORCH_CUDA_ALLOC_CONF gives them. */
  int64_t max_split_size; /* INT64_MAX: all blocks may be split */
  int64_t max_non_split_rounding;
  int64_t divisions[PP_CACHING_DIVISIONS]; /* of sizes from 2^(20+i); 0: no such rounding */
  double garbage_collection_threshold;     /* 0: none */
  double memory_fraction;                  /* of the capacity; 0: not set */
  bool expandable_segments;
  int64_t capacity; /* bytes that the device has; 0: as many as are asked for */
  /* Where releases differ. */
  bool rest_overwrites; /* ">" in the list of divisions begins at the last interval named */
  bool fixed_rounding;  /* max_non_split_rounding is not looked at: large_buffer is */
  bool exact_segments;  /* not of any release: segments are as large as the request */
} pp_caching_config;

/* The names of the presets, the default first; NULL behind the last. */
const char *pp_caching_preset_name(size_t index);
/* False if there is none of that name (NULL: the default). */
bool pp_caching_preset(const char *name, pp_caching_config *config);
/* Reads settings as PYTORCH_CUDA_ALLOC_CONF has them ("max_split_size_mb:40,expandable_segments:
 * True"). PP_ERROR_USAGE says what is wrong; *config is then as before. */
pp_status pp_caching_configure(pp_caching_config *config, const char *settings, pp_error *error);

typedef struct pp_caching pp_caching;

/* What the allocator asks of the driver. */
typedef enum pp_caching_action {
  PP_SEGMENT_ALLOC = 0,
  PP_SEGMENT_FREE = 1,
  PP_SEGMENT_MAP = 2,
  PP_SEGMENT_UNMAP = 3
} pp_caching_action;
typedef void pp_caching_watch(pp_caching_action action, int64_t address, int64_t bytes,
                              int64_t stream, void *data);

/* Now, and the most since the last pp_caching_reset_peaks. requested <= allocated <= reserved. */
typedef struct pp_caching_figures {
  int64_t requested, rounded, allocated, reserved; /* bytes; rounded: before splitting */
  int64_t requested_peak, rounded_peak, allocated_peak, reserved_peak;
  int64_t segments, retries, failures; /* failures: requests that were refused */
} pp_caching_figures;

/* A block; the list of them is a state. */
typedef struct pp_caching_block {
  int64_t address, bytes, requested, stream; /* requested: 0 unless allocated */
  bool allocated, small, expandable;
  bool first; /* of its segment: the block before it, if any, is not its neighbour */
} pp_caching_block;

enum { PP_CACHING_NOTHING = -1, PP_CACHING_FULL = -2 };

pp_status pp_caching_new(const pp_caching_config *config, pp_caching **caching, pp_error *error);
/* The state that blocks describe, which stand by address, segment after segment. block[i] gets the
 * number i. PP_ERROR_INPUT if no allocator can be in that state. */
pp_status pp_caching_load(const pp_caching_config *config, const pp_caching_block *block,
                          size_t count, pp_caching **caching, pp_error *error);
pp_status pp_caching_copy(const pp_caching *caching, pp_caching **copy, pp_error *error);
void pp_caching_free(pp_caching *caching);

/* One request. *block is then its number, or PP_CACHING_NOTHING for 0 bytes, or PP_CACHING_FULL if
 * the device has no room even when all that can be has been given back. Expected O(log n) in the
 * free blocks, except that giving back looks at all of them (as the allocator itself does). After
 * PP_ERROR_MEMORY the state is lost: only free it. */
pp_status pp_caching_allocate(pp_caching *caching, int64_t bytes, int64_t stream, pp_index *block,
                              pp_error *error);
void pp_caching_release(pp_caching *caching, pp_index block);
/* torch.cuda.empty_cache(). */
pp_status pp_caching_empty(pp_caching *caching, pp_error *error);

pp_caching_figures pp_caching_now(const pp_caching *caching);
void pp_caching_reset_peaks(pp_caching *caching);
/* All blocks by address, malloc'ed. */
pp_status pp_caching_blocks(const pp_caching *caching, pp_caching_block **block, size_t *count,
                            pp_error *error);
/* The address of a block that is allocated. */
int64_t pp_caching_address(const pp_caching *caching, pp_index block);
/* Tells what is asked of the driver. NULL: nobody. */
void pp_caching_set_watch(pp_caching *caching, pp_caching_watch *watch, void *data);
/* For replaying a trace: the next segment stands there (may be called for several); so many of the
 * next requests to the driver are refused. */
pp_status pp_caching_place_next(pp_caching *caching, int64_t address, pp_error *error);
void pp_caching_refuse_next(pp_caching *caching, int64_t requests);

/* An entry of a trace (torch.cuda.memory._record_memory_history). */
typedef enum pp_caching_event_kind {
  PP_EVENT_ALLOC = 0,
  PP_EVENT_FREE = 1,
  PP_EVENT_SEGMENT = 2, /* `action` says what */
  PP_EVENT_FULL = 3     /* a request was refused */
} pp_caching_event_kind;
typedef struct pp_caching_event {
  pp_caching_event_kind kind;
  pp_caching_action action;
  int64_t address, bytes, stream;
} pp_caching_event;
/* Does what the trace says to *caching, which may be replaced by another one, and compares: each
 * block must stand where the trace says, and the driver be asked for what it says. *same says
 * whether all was so, *at is the first entry that was not (or count), and `why` (if not NULL, 200
 * bytes) what was wrong with it; the rest is then not replayed. */
pp_status pp_caching_replay(pp_caching **caching, const pp_caching_event *event, size_t count,
                            bool *same, size_t *at, char *why, pp_error *error);

/* Runs a program in an order (NULL: the original one): what is live_in is allocated first, then
 * each storage just before the statement that accesses it first, and freed just after the one that
 * accesses it last; the requests of a statement's work are made after that and taken back in
 * reverse. What is then left is freed, so the cache is what it leaves. If step is not NULL it holds
 * n values: the figures while the i-th statement runs. *full is the step at which the device was
 * full, -1 if arguments did not fit, n if all did. The peaks are reset first. */
pp_status pp_caching_run(pp_caching *caching, const pp_program *program, const pp_index *order,
                         pp_caching_figures *step, pp_index *full, pp_error *error);

/* Why the reserved peak is not the requested one: they add up to reserved. Each is what the peak
 * gains (or loses) when one more rule holds. */
typedef struct pp_caching_causes {
  int64_t requested;     /* the peak of the model, without the history */
  int64_t rounding;      /* sizes are rounded up */
  int64_t remainder;     /* what is left of a block is too small to be split off */
  int64_t fragmentation; /* free blocks do not fit */
  int64_t segments;      /* segments are larger than what asked for them */
  int64_t history;       /* what was cached at the start does not fit */
  int64_t reserved, allocated;
  pp_index full; /* as of pp_caching_run, from the history */
} pp_caching_causes;
/* `history` may be NULL: an empty cache. */
pp_status pp_caching_explain(const pp_caching_config *config, const pp_caching *history,
                             const pp_program *program, const pp_index *order,
                             pp_caching_causes *causes, pp_error *error);

/* No order of a program whose requested peak is never below `requested` makes the model reserve
 * less: that much must fit beside what the history holds, and segments have sizes. `history` may be
 * NULL. */
int64_t pp_caching_bound(const pp_caching_config *config, const pp_caching *history,
                         int64_t requested);

typedef struct pp_caching_robust_options {
  int64_t runs;             /* so many orders are tried at most; 0: the default */
  bool (*stop)(void *data); /* asked now and then, if not NULL */
  void *data;
} pp_caching_robust_options;
/* Among the orders whose requested peak is at most that of `order`, looks for one whose reserved
 * peak (then allocated peak) is low, by local search: `order` is changed in place, never for the
 * worse. *tried (if not NULL) is how many orders were run. `options` may be NULL. */
pp_status pp_caching_robust(const pp_caching_config *config, const pp_caching *history,
                            const pp_program *program, pp_index *order,
                            const pp_caching_robust_options *options, int64_t *tried,
                            pp_error *error);

#ifdef __cplusplus
}
#endif
#endif
