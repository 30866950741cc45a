/* What is known of the operators themselves: which are functions of their inputs, and what they
 * multiply. The names are those of onnx.defs (onnx 1.23) and of onnxruntime's own operators. */
#include <string.h>

#include "format/onnx_model.h"

/* Pure operators by domain, sorted. Others of these domains draw random numbers, call bodies, or
 * change memory that they share with the caller (caches of attention). */
/* clang-format off */
static const char *const standard[] = {
    "Abs", "Acos", "Acosh", "Add", "AffineGrid", "And", "ArgMax", "ArgMin", "Asin", "Asinh",
    "Atan", "Atanh", "Attention", "AveragePool", "BatchNormalization", "BitCast", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "BlackmanWindow", "Cast", "CastLike",
    "CausalConvWithState", "Ceil", "Celu", "CenterCropPad", "Clip", "Col2Im", "Compress",
    "Concat", "ConcatFromSequence", "Constant", "ConstantOfShape", "Conv", "ConvInteger",
    "ConvTranspose", "Cos", "Cosh", "CumProd", "CumSum", "DFT", "DeformConv", "DepthToSpace",
    "DequantizeLinear", "Det", "Div", "DynamicQuantizeLinear", "Einsum", "Elu", "Equal", "Erf",
    "Exp", "Expand", "EyeLike", "Flatten", "Floor", "GRU", "Gather", "GatherElements", "GatherND",
    "Gelu", "Gemm", "GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "Greater",
    "GreaterOrEqual", "GridSample", "GroupNormalization", "HammingWindow", "HannWindow",
    "HardSigmoid", "HardSwish", "Hardmax", "Identity", "ImageDecoder", "InstanceNormalization",
    "IsInf", "IsNaN", "LRN", "LSTM", "LayerNormalization", "LeakyRelu", "Less", "LessOrEqual",
    "LinearAttention", "Log", "LogSoftmax", "LpNormalization", "LpPool", "MatMul",
    "MatMulInteger", "Max", "MaxPool", "MaxRoiPool", "MaxUnpool", "Mean",
    "MeanVarianceNormalization", "MelWeightMatrix", "Min", "Mish", "Mod", "Mul", "Neg",
    "NegativeLogLikelihoodLoss", "NonMaxSuppression", "NonZero", "Not", "OneHot", "Optional",
    "OptionalGetElement", "OptionalHasElement", "Or", "PRelu", "Pad", "Pow", "QLinearConv",
    "QLinearMatMul", "QuantizeLinear", "RMSNormalization", "RNN", "Range", "Reciprocal",
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "RegexFullMatch", "Relu",
    "Reshape", "Resize", "ReverseSequence", "RoiAlign", "RotaryEmbedding", "Round", "STFT",
    "Scatter", "ScatterElements", "ScatterND", "Selu", "SequenceAt", "SequenceConstruct",
    "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "Shrink", "Sigmoid",
    "Sign", "Sin", "Sinh", "Slice", "Softmax", "SoftmaxCrossEntropyLoss", "Softplus", "Softsign",
    "SpaceToDepth", "Split", "SplitToSequence", "Sqrt", "Squeeze", "StringConcat",
    "StringNormalizer", "StringSplit", "Sub", "Sum", "SwiGLU", "Swish", "Tan", "Tanh",
    "TensorScatter", "TfIdfVectorizer", "ThresholdedRelu", "Tile", "TopK", "Transpose", "Trilu",
    "Unique", "Unsqueeze", "Upsample", "Where", "Xor",};

static const char *const learning[] = {
    "ArrayFeatureExtractor", "Binarizer", "CastMap", "CategoryMapper", "DictVectorizer",
    "FeatureVectorizer", "Imputer", "LabelEncoder", "LinearClassifier", "LinearRegressor",
    "Normalizer", "OneHotEncoder", "SVMClassifier", "SVMRegressor", "Scaler", "TreeEnsemble",
    "TreeEnsembleClassifier", "TreeEnsembleRegressor", "ZipMap",};

static const char *const microsoft[] = {
    "BiasAdd", "BiasGelu", "BiasSoftmax", "BiasSplitGelu", "CDist", "ComplexMul",
    "ComplexMulConj", "ConvTransposeWithDynamicPads", "CropAndResize", "DequantizeLinear",
    "DynamicQuantizeLSTM", "DynamicQuantizeMatMul", "EmbedLayerNormalization", "ExpandDims",
    "FastGelu", "FusedConv", "FusedGemm", "FusedMatMul", "FusedMatMulActivation",
    "GatherBlockQuantized", "GatherND", "Gelu", "GemmFastGelu", "GridSample", "GroupNorm",
    "Inverse", "Irfft", "IsAllFinite", "MatMulBnb4", "MatMulFpQ4", "MatMulInteger16",
    "MatMulIntegerToFloat", "MatMulNBits", "MaxpoolWithMask", "MulInteger", "MurmurHash3",
    "NGramRepeatBlock", "NhwcConv", "NhwcFusedConv", "NhwcMaxPool", "Pad",
    "QEmbedLayerNormalization", "QGemm", "QLinearAdd", "QLinearAveragePool", "QLinearConcat",
    "QLinearConv", "QLinearGlobalAveragePool", "QLinearLeakyRelu", "QLinearMul",
    "QLinearReduceMean", "QLinearSigmoid", "QLinearSoftmax", "QLinearWhere", "QuantizeLinear",
    "QuickGelu", "Range", "ReduceSumInteger", "RelativePositionBias", "Rfft", "RotaryEmbedding",
    "SkipGroupNorm", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SwiGLU",
    "Tokenizer", "TransposeMatMul", "Trilu", "UnfoldTensor", "Unique", "WordConvEmbedding",};

/* clang-format on */
static const char *const blocked[] = {"AveragePool",   "Conv",    "GlobalAveragePool",
                                      "GlobalMaxPool", "MaxPool", "ReorderInput",
                                      "ReorderOutput", "Upsample"};

static const struct {
  const char *domain;
  size_t count;
  const char *const *name;
} domains[] = {
    {"", sizeof standard / sizeof *standard, standard},
    {"ai.onnx.ml", sizeof learning / sizeof *learning, learning},
    {"com.microsoft", sizeof microsoft / sizeof *microsoft, microsoft},
    {"com.microsoft.nchwc", sizeof blocked / sizeof *blocked, blocked},
};

static int compare_name(const void *name, const void *entry) {
  return strcmp(name, *(const char *const *)entry);
}

static bool is_pure(const pp_onnx_node *node) {
  for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
    if (!strcmp(domains[i].domain, node->domain))
      return bsearch(node->operator_, domains[i].name, domains[i].count, sizeof *domains[i].name,
                     compare_name);
  return false;
}

/* A node's operator against "domain:name". */
static int compare_function(const void *key, const void *entry) {
  const pp_onnx_node *node = key;
  const char *function = *(const char *const *)entry;
  size_t length = strlen(node->domain);
  int order = strncmp(node->domain, function, length);
  if (!order)
    order = ':' - (unsigned char)function[length];
  return order ? order : strcmp(node->operator_, function + length + 1);
}

bool pp_onnx_is_function(const pp_onnx *onnx, const pp_onnx_node *node) {
  return onnx->function.count && bsearch(node, onnx->function.items, onnx->function.count,
                                         sizeof *onnx->function.items, compare_function);
}

static bool is_one_of(const pp_onnx_node *node, const char *const *names) {
  for (; *names; names++)
    if (!strcmp(*names, node->operator_))
      return true;
  return false;
}

pp_onnx_class pp_onnx_classify(const pp_onnx *onnx, const pp_onnx_node *node) {
  static const char *const calls[] = {"If", "Loop", "Scan", "SequenceMap", NULL};
  static const char *const shapes[] = {"Shape", "Size", NULL};
  static const char *const random[] = {"RandomNormal",
                                       "RandomNormalLike",
                                       "RandomUniform",
                                       "RandomUniformLike",
                                       "Multinomial",
                                       "Bernoulli",
                                       NULL};
  if (pp_onnx_is_function(onnx, node)) /* it may stand in for an operator of ONNX, too */
    return CLASS_UNKNOWN;
  if (!*node->domain) {
    if (is_one_of(node, calls))
      return CLASS_CALL;
    if (is_one_of(node, shapes))
      return CLASS_SHAPE;
    if (is_one_of(node, random))
      return CLASS_RANDOM;
    if (!strcmp(node->operator_, "Dropout"))
      return node->training ? CLASS_RANDOM : CLASS_PURE;
  }
  return is_pure(node) ? CLASS_PURE : CLASS_UNKNOWN;
}

/* ---- Multiply-accumulates ---- */

/* Input or output i of a node if its shape is known, or NULL. */
static const pp_onnx_value *operand(const pp_onnx *onnx, size_t first, uint32_t count, uint32_t i) {
  uint32_t value = i < count ? onnx->reference.items[first + i].value : PP_ONNX_NONE;
  if (value == PP_ONNX_NONE || onnx->value.items[value].state != SHAPE_KNOWN)
    return NULL;
  return onnx->value.items + value;
}

static const pp_onnx_value *input(const pp_onnx *onnx, const pp_onnx_node *node, uint32_t i) {
  return operand(onnx, node->input, node->inputs, i);
}

static const pp_onnx_value *output(const pp_onnx *onnx, const pp_onnx_node *node, uint32_t i) {
  return operand(onnx, node->output, node->outputs, i);
}

/* A product that becomes unknown when a factor is or when it leaves int64_t. */
static void multiply(int64_t *product, int64_t factor) {
  if (*product != PP_MACS_UNKNOWN &&
      (factor < 0 || __builtin_mul_overflow(*product, factor, product)))
    *product = PP_MACS_UNKNOWN;
}

static void add(int64_t *sum, int64_t term) {
  if (*sum != PP_MACS_UNKNOWN && (term < 0 || __builtin_add_overflow(*sum, term, sum)))
    *sum = PP_MACS_UNKNOWN;
}

/* The product of dimensions from <= i < to (negative: from behind) of a value. */
static int64_t extent(const pp_onnx *onnx, const pp_onnx_value *value, int64_t from, int64_t to) {
  int64_t product = 1;
  if (!value)
    return PP_MACS_UNKNOWN;
  from += from < 0 ? value->dims : 0;
  to += to < 0 ? value->dims : 0;
  if (from < 0 || from > to || to > value->dims)
    return PP_MACS_UNKNOWN;
  for (int64_t i = from; i < to; i++)
    multiply(&product, onnx->dim.items[value->dim + (size_t)i].size);
  return product;
}

static int64_t elements(const pp_onnx *onnx, const pp_onnx_value *value) {
  return value ? extent(onnx, value, 0, value->dims) : PP_MACS_UNKNOWN;
}

/* Every result (or, transposed, every value) meets all weights of its channel. */
static int64_t convolution(const pp_onnx *onnx, const pp_onnx_value *many,
                           const pp_onnx_value *weights) {
  int64_t macs = elements(onnx, many);
  multiply(&macs, weights ? extent(onnx, weights, 1, weights->dims) : PP_MACS_UNKNOWN);
  return macs;
}

/* Results times the inner dimension: the last one of the left matrix or vector. */
static int64_t product(const pp_onnx *onnx, const pp_onnx_value *left, const pp_onnx_value *out) {
  int64_t macs = elements(onnx, out);
  multiply(&macs, left ? extent(onnx, left, left->dims - 1, left->dims) : PP_MACS_UNKNOWN);
  return macs;
}

/* In every step all weights of both kinds are met once. */
static int64_t recurrence(const pp_onnx *onnx, const pp_onnx_node *node) {
  int64_t macs = elements(onnx, input(onnx, node, 1));
  add(&macs, elements(onnx, input(onnx, node, 2)));
  multiply(&macs, extent(onnx, input(onnx, node, 0), 0, 2));
  return macs;
}

/* Queries meet keys, then weights meet values: as many keys as there are with the past ones. */
static int64_t attention(const pp_onnx *onnx, const pp_onnx_node *node) {
  int64_t macs = elements(onnx, input(onnx, node, 0));
  int64_t keys = extent(onnx, input(onnx, node, 1), -2, -1);
  if (node->inputs > 4 && onnx->reference.items[node->input + 4].value != PP_ONNX_NONE)
    add(&keys, extent(onnx, input(onnx, node, 4), -2, -1));
  add(&macs, elements(onnx, output(onnx, node, 0)));
  multiply(&macs, keys);
  return macs;
}

/* The size of every index of the equation, multiplied. No ellipsis. */
static int64_t einsum(const pp_onnx *onnx, const pp_onnx_node *node) {
  int64_t macs = 1;
  bool seen[256] = {false};
  const unsigned char *c = (const unsigned char *)node->equation;
  if (node->inputs < 2)
    return PP_MACS_UNKNOWN;
  for (uint32_t i = 0; i < node->inputs; i++) {
    const pp_onnx_value *value = input(onnx, node, i);
    uint32_t d = 0;
    for (; *c && *c != ',' && *c != '-'; c++) {
      if (*c == ' ')
        continue;
      if (*c == '.' || !value || d == value->dims)
        return PP_MACS_UNKNOWN;
      if (!seen[*c])
        multiply(&macs, onnx->dim.items[value->dim + d].size);
      seen[*c] = true;
      d++;
    }
    if (*c != ',' && i + 1 < node->inputs)
      return PP_MACS_UNKNOWN;
    c += *c == ',';
  }
  return macs;
}

int64_t pp_onnx_macs(const pp_onnx *onnx, const pp_onnx_node *node) {
  static const char *const convolutions[] = {"Conv", "ConvInteger", "DeformConv", "FusedConv",
                                             NULL};
  static const char *const recurrences[] = {"LSTM", "GRU", "RNN", NULL};
  static const char *const products[] = {"MatMul", "MatMulInteger", "QLinearMatMul", NULL};
  static const char *const uncounted[] = {"CausalConvWithState", "DFT",  "Det",    "ImageDecoder",
                                          "LinearAttention",     "STFT", "SwiGLU", NULL};
  const pp_onnx_value *first = input(onnx, node, 0), *out = output(onnx, node, 0);
  if (node->class != CLASS_PURE)
    return PP_MACS_UNKNOWN;
  if (!strcmp(node->operator_, "QLinearConv"))
    return convolution(onnx, out, input(onnx, node, 3));
  if (is_one_of(node, convolutions))
    return convolution(onnx, out, input(onnx, node, 1));
  if (!strcmp(node->operator_, "ConvTranspose"))
    return convolution(onnx, first, input(onnx, node, 1));
  if (!strcmp(node->operator_, "Gemm")) {
    int64_t macs = elements(onnx, out);
    multiply(&macs, node->transposed ? extent(onnx, first, 0, 1) : extent(onnx, first, 1, 2));
    return macs;
  }
  if (is_one_of(node, products))
    return product(onnx, first, out);
  if (is_one_of(node, recurrences))
    return recurrence(onnx, node);
  if (!strcmp(node->operator_, "Attention") && !*node->domain)
    return attention(onnx, node);
  if (!strcmp(node->operator_, "Einsum"))
    return einsum(onnx, node);
  /* Of elementwise operators and of those that only move data: none. */
  return *node->domain || is_one_of(node, uncounted) ? PP_MACS_UNKNOWN : 0;
}
