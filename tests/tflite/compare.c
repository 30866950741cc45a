/* compare ORIGINAL PERMUTED [flip] - pp_tflite_compare of two files. Prints the orders as JSON and
 * exits with 0; or prints why not, with the byte, and exits with 1 (65 if a file cannot be read).
 * flip: moreover, no file that differs from PERMUTED in a single bit may be accepted. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/tflite.h"
#include "memory.h"

static pp_status read_copy(const uint8_t *bytes, size_t size, pp_model **model, pp_error *error) {
  uint8_t *copy = malloc(size + 1);
  if (!copy)
    abort();
  memcpy(copy, bytes, size);
  copy[size] = 0;
  return pp_model_read_bytes("permuted", copy, size, NULL, model, error);
}

static size_t operators_of(const pp_model *model, size_t i) {
  pp_program *program;
  pp_error error;
  int64_t *zero = pp_zalloc(model->programs, sizeof *zero);
  if (pp_model_build(model, i, zero, &program, &error))
    abort();
  size_t n = (size_t)pp_program_statements(program);
  pp_program_free(program);
  free(zero);
  return n;
}

static void print_orders(const pp_model *model, pp_index *const *order) {
  printf("[");
  for (size_t i = 0; i < model->programs; i++) {
    printf("%s[", i ? ", " : "");
    for (size_t k = 0, n = operators_of(model, i); k < n; k++)
      printf("%s%" PRId32, k ? ", " : "", order[i][k]);
    printf("]");
  }
  printf("]\n");
}

static int flip_all(const pp_model *original, const pp_model *permuted) {
  uint8_t *bytes = malloc(permuted->size);
  int bad = 0;
  if (!bytes)
    abort();
  memcpy(bytes, permuted->bytes, permuted->size);
  for (size_t bit = 0; bit < 8 * permuted->size; bit++) {
    pp_model *model;
    pp_error error;
    pp_index **order;
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    if (!read_copy(bytes, permuted->size, &model, &error)) {
      if (!pp_tflite_compare(original, model, &order, &error)) {
        printf("bit %zu of byte %zu makes no difference\n", bit % 8, bit / 8);
        bad = 1;
        pp_orders_free(order, original->programs);
      }
      pp_model_free(model);
    }
    bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
  }
  free(bytes);
  return bad;
}

static int compare(const pp_model *original, const pp_model *permuted, bool flip) {
  pp_error error;
  pp_index **order;
  if (pp_tflite_compare(original, permuted, &order, &error)) {
    printf("byte %" PRId64 ": %s\n", error.offset, error.message);
    return 1;
  }
  print_orders(original, order);
  pp_orders_free(order, original->programs);
  return flip ? flip_all(original, permuted) : 0;
}

int main(int count, char **argument) {
  pp_model *original = NULL, *permuted = NULL;
  pp_error error;
  int code = 65;
  if (count < 3)
    return 64;
  if (pp_model_read(argument[1], NULL, &original, &error) ||
      pp_model_read(argument[2], NULL, &permuted, &error))
    printf("byte %" PRId64 ": %s\n", error.offset, error.message);
  else
    code = compare(original, permuted, count > 3);
  pp_model_free(original);
  pp_model_free(permuted);
  return code;
}
