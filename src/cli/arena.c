/* peakproof arena: offsets in a static arena, proved minimal where they are. */
#include <stdlib.h>
#include <string.h>

#include "cli/arena.h"

static const char help[] =
    "Usage: peakproof arena [OPTION]... MODEL\n"
    "\n"
    "Places the tensors of MODEL, in the order that it has, in the smallest arena, and says "
    "whether "
    "it\n"
    "is known to be minimal (doc/arena.md). MODEL is .tflite, ONNX, program JSON, or minimalloc's "
    "CSV.\n"
    "\n"
    "      --runtime RUNTIME     tflm: TensorFlow Lite Micro's rules, one arena for all subgraphs\n"
    "                            litert: LiteRT's rules, one for each subgraph\n"
    "                            a number: offsets are multiples of it, tensors live from first "
    "to\n"
    "                            last use. Default: tflm for .tflite, the file's own for CSV\n"
    "  -o, --output FILE         tflm: write the model with the offsets in it; else: write a CSV\n"
    "      --scratch FILE        known scratch of operators, CSV: subgraph,operator,bytes\n"
    "      --c-header FILE       write the arena's size and a table of offsets for C\n"
    "      --svg FILE            draw the arena: bytes upwards, time to the right\n"
    "      --reorder             pack the order of lowest peak instead, or another one of the same "
    "peak\n"
    "                            whose arena is smaller; the outputs are in that order\n"
    "      --certificate DIR     with --reorder: write the proof of each program's peak "
    "(peakproof plan)\n"
    "      --ordered FILE        with --reorder: write the model in that order, without offsets, "
    "for\n"
    "                            peakproof verify\n"
    "      --program NAME        this program, where the model has several (not with tflm)\n"
    "      --budget SIZE         exit with 1 if the arena is larger than SIZE\n"
    "      --node-limit N        let the exact search visit at most N nodes\n"
    "      --json                report as JSON\n" PP_COMMON_HELP;

enum runtime { RUNTIME_DEFAULT, RUNTIME_TFLM, RUNTIME_LITERT, RUNTIME_PLAIN };
/* ---- Options ---- */

enum {
  OPTION_RUNTIME = PP_OPTION_OWN,
  OPTION_SCRATCH,
  OPTION_HEADER,
  OPTION_SVG,
  OPTION_REORDER,
  OPTION_CERTIFICATE,
  OPTION_ORDERED,
  OPTION_PROGRAM,
  OPTION_BUDGET,
  OPTION_NODES,
  OPTION_JSON
};

static const struct option options[] = {
    PP_COMMON_OPTIONS,
    {"runtime", required_argument, NULL, OPTION_RUNTIME},
    {"output", required_argument, NULL, 'o'},
    {"scratch", required_argument, NULL, OPTION_SCRATCH},
    {"c-header", required_argument, NULL, OPTION_HEADER},
    {"svg", required_argument, NULL, OPTION_SVG},
    {"reorder", no_argument, NULL, OPTION_REORDER},
    {"certificate", required_argument, NULL, OPTION_CERTIFICATE},
    {"ordered", required_argument, NULL, OPTION_ORDERED},
    {"program", required_argument, NULL, OPTION_PROGRAM},
    {"budget", required_argument, NULL, OPTION_BUDGET},
    {"node-limit", required_argument, NULL, OPTION_NODES},
    {"json", no_argument, NULL, OPTION_JSON},
    {NULL, 0, NULL, 0}};

static int parse_runtime(pp_arena_call *call, const char *text) {
  if (!strcmp(text, "tflm")) {
    call->runtime = PP_RUNTIME_TFLM;
    call->alignment = PP_TFLM_ALIGNMENT;
  } else if (!strcmp(text, "litert")) {
    call->runtime = PP_RUNTIME_LITERT;
    call->alignment = PP_LITERT_ALIGNMENT;
  } else if (pp_parse_bytes(text, &call->alignment) && call->alignment > 0) {
    call->runtime = PP_RUNTIME_PLAIN;
  } else {
    return pp_usage_error("arena", "--runtime wants tflm, litert or an alignment, not \"%s\"",
                          text);
  }
  return -1;
}

static int own_option(int option, void *data) {
  pp_arena_call *call = data;
  switch (option) {
  case OPTION_RUNTIME:
    return parse_runtime(call, optarg);
  case 'o':
    call->output = optarg;
    return -1;
  case OPTION_SCRATCH:
    call->scratch_path = optarg;
    return -1;
  case OPTION_HEADER:
    call->header = optarg;
    return -1;
  case OPTION_SVG:
    call->svg = optarg;
    return -1;
  case OPTION_REORDER:
    call->reorder = true;
    return -1;
  case OPTION_CERTIFICATE:
    call->certificate = optarg;
    return -1;
  case OPTION_ORDERED:
    call->ordered = optarg;
    return -1;
  case OPTION_PROGRAM:
    call->common.plan.only = optarg;
    return -1;
  case OPTION_JSON:
    call->common.json = true;
    return -1;
  case OPTION_NODES:
    if (pp_parse_bytes(optarg, &call->node_limit) && call->node_limit > 0)
      return -1;
    return pp_usage_error("arena", "--node-limit wants a number above 0, not \"%s\"", optarg);
  default: /* OPTION_BUDGET */
    call->budget.asked = true;
    if (pp_parse_bytes(optarg, &call->budget.bytes))
      return -1;
    return pp_usage_error("arena", "--budget wants bytes, not \"%s\"", optarg);
  }
}

static const pp_syntax syntax = {"arena", help, ":ho:q", options, own_option, 1, "one model"};

int pp_verb_arena(int argc, char **argv) {
  pp_arena_call call = {.alignment = 1};
  int code = pp_parse(&syntax, argc, argv, &call.common, &call);
  if (code != -1)
    return code;
  call.path = argv[optind];
  if ((call.certificate || call.ordered) && !call.reorder)
    return pp_usage_error("arena", "--%s is of the order that --reorder chooses",
                          call.certificate ? "certificate" : "ordered");
  const pp_place place[] = {{"MODEL", call.path, PP_PLACE_MODEL},
                            {"--scratch", call.scratch_path, PP_PLACE_INPUT},
                            {"-o", call.output, PP_PLACE_OUTPUT},
                            {"--ordered", call.ordered, PP_PLACE_OUTPUT},
                            {"--c-header", call.header, PP_PLACE_OUTPUT},
                            {"--svg", call.svg, PP_PLACE_OUTPUT},
                            {"--certificate", call.certificate, PP_PLACE_DIRECTORY}};
  const size_t places = sizeof place / sizeof *place;
  code = pp_check_places("arena", place, places);
  if (!code)
    code = pp_arena_read(&call);
  if (!code && call.model)
    code = pp_check_companions(call.model, true, place, places);
  if (!code && call.model)
    code = pp_check_proofs(call.model, place, places);
  if (!code && call.reorder)
    code = pp_arena_reorder(&call);
  if (!code)
    code = pp_arena_pack(&call);
  if (!code)
    code = pp_arena_finish(&call);
  for (size_t i = 0; i < call.jobs; i++)
    pp_arena_job_free(&call.job[i]);
  free(call.job);
  free(call.scratch);
  pp_csv_free(&call.csv);
  pp_planned_free(&call.planned);
  if (call.given && call.given != call.model)
    pp_model_free(call.given);
  if (call.model)
    pp_model_free(call.model);
  return code;
}
