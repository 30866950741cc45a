/* NAME.json and NAME.cert of every program. */
#include <sha2.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "error.h"

/* Writes to a file and hashes what it writes. */
struct hashed {
  pp_output *output;
  SHA2_CTX hash;
};

static bool hashed_write(const void *bytes, size_t size, void *data) {
  struct hashed *hashed = data;
  SHA256Update(&hashed->hash, bytes, size);
  return pp_output_write(bytes, size, hashed->output);
}

static pp_status write_program(const pp_program *program, const char *path,
                               char sha256[SHA256_DIGEST_STRING_LENGTH], pp_error *error) {
  struct hashed hashed;
  pp_status status = pp_output_open(path, &hashed.output, error);
  if (status)
    return status;
  SHA256Init(&hashed.hash);
  status = pp_program_json_write(program, hashed_write, &hashed, error);
  SHA256End(&hashed.hash, sha256);
  return pp_output_close(hashed.output, status, error);
}

static pp_status write_certificate(const pp_plan *plan, const char *path, const char *sha256,
                                   pp_error *error) {
  pp_output *output;
  pp_status status = pp_output_open(path, &output, error);
  if (status)
    return status;
  status = pp_certificate_write(plan, sha256, pp_output_write, output, error);
  return pp_output_close(output, status, error);
}

static pp_status refuse(const char *path, const char *input, const char *output, pp_error *error) {
  if (pp_same_file(path, input) || (output && pp_same_file(path, output)))
    return pp_fail(error, PP_ERROR_CREATE,
                   "would overwrite the model: choose another directory for --certificate");
  return PP_OK;
}

static int write_proof(const pp_planned *planned, size_t i, const char *directory,
                       const char *input, const char *output) {
  char sha256[SHA256_DIGEST_STRING_LENGTH];
  const char *name = planned->model->name[i];
  char *json = pp_path_in(directory, name, "json"),
       *certificate = pp_path_in(directory, name, "cert");
  const pp_planned_program *it = planned->program + i;
  const char *path = json;
  pp_error error;
  pp_status status = json && certificate ? PP_OK : pp_fail_memory(&error);
  if (!status && !(status = refuse(json, input, output, &error)))
    status = write_program(it->program, json, sha256, &error);
  if (!status) {
    path = certificate;
    if (!(status = refuse(certificate, input, output, &error)))
      status = write_certificate(it->plan, certificate, sha256, &error);
  }
  int code = status ? pp_say_error(path ? path : directory, &error) : PP_EXIT_DONE;
  free(json);
  free(certificate);
  return code;
}

int pp_write_proofs(const pp_planned *planned, const char *directory, const char *input,
                    const char *output) {
  pp_error error;
  if (pp_make_directory(directory, &error))
    return pp_say_error(directory, &error);
  for (size_t i = 0; i < planned->model->programs; i++) {
    int code = write_proof(planned, i, directory, input, output);
    if (code)
      return code;
  }
  return PP_EXIT_DONE;
}
