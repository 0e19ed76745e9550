// Compares a file's hash with the one a message names.

#include <cerrno>
#include <filesystem>
#include <memory>
#include <optional>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>
#include <system_error>

#include "digest.hpp"
#include "file.hpp"
#include "request.hpp"

namespace {

constexpr std::size_t kChunk = 64 * 1024;

std::string text_of(int error) { return std::generic_category().message(error); }

/// Errors that the same file will bring again, whoever tries; the others may pass (a network file system, a full table
/// of open files).
bool is_final(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case EACCES:
    case EPERM:
    case ELOOP:
    case ENAMETOOLONG:
    case EXDEV:
    case ENXIO:
      return true;
    default:
      return false;
  }
}

std::string describe_open_error(const std::string& path, int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return path + " is missing";
    case EISDIR:
      return path + " is a folder";
    case EINVAL:
    case ENXIO:
      return path + " is not a regular file";
    case EXDEV:
      return path + " leads out of the root folder";
    default:
      return path + " cannot be opened: " + text_of(error);
  }
}

class VerifyFile {
 public:
  static constexpr const char* help =
      "Hashes the file that the message names, {\"path\": \"...\", \"md5\" or \"sha256\": \"...\"}, and rejects it "
      "when the hash differs.";
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("root",
                                  "The folder that all paths, absolute ones too, are within; without it paths must be "
                                  "absolute."),
  };

  explicit VerifyFile(const sluice::Options& values) : root_(values.get("root", "")) {
    std::error_code failure;
    if (values.has("root") && !std::filesystem::is_directory(root_, failure)) {
      throw std::invalid_argument("the option \"root\" must be a folder that exists; \"" + root_ + "\" is none");
    }
  }

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    std::optional<Request> request;
    try {
      request = parse_request(message.body());
    } catch (const BadRequest& bad) {
      return sluice::reject(bad.what());
    }
    if (root_.empty() && request->path.front() != '/') {
      return sluice::reject("the path " + request->path +
                            " is relative; set the option \"root\" to the folder it starts from");
    }
    if (request->md5 && !md5_.available()) {
      return sluice::retry("this machine's OpenSSL does not offer MD5");
    }
    File file;
    if (const int error = file.open(root_, request->path); error != 0) {
      const std::string reason = describe_open_error(request->path, error);
      return is_final(error) ? sluice::reject(reason) : sluice::retry(reason);
    }
    return compare(*request, file, context);
  }

 private:
  sluice::Outcome compare(const Request& request, File& file, const sluice::Context& context) const {
    std::optional<Digest> md5;
    std::optional<Digest> sha256;
    if (request.md5) {
      md5.emplace(md5_);
    }
    if (request.sha256) {
      sha256.emplace(sha256_);
    }
    const auto buffer = std::make_unique_for_overwrite<char[]>(kChunk);
    std::size_t size = 0;
    do {
      if (context.stop_requested()) {
        const bool timed_out = context.time_left() <= std::chrono::nanoseconds::zero();
        return timed_out ? sluice::retry(request.path + " was not read within the job's timeout") : sluice::release();
      }
      if (const int error = file.read(buffer.get(), kChunk, &size); error != 0) {
        return sluice::retry(request.path + " cannot be read: " + text_of(error));
      }
      if (md5) {
        md5->update(buffer.get(), size);
      }
      if (sha256) {
        sha256->update(buffer.get(), size);
      }
    } while (size > 0);
    const std::string wrong = difference("md5", request.md5, md5) + difference("sha256", request.sha256, sha256);
    return wrong.empty() ? sluice::done() : sluice::reject(request.path + wrong);
  }

  static std::string difference(const char* name, const std::optional<std::string>& expected,
                                std::optional<Digest>& digest) {
    if (!expected) {
      return {};
    }
    const std::string found = digest->finish();
    return found == *expected ? "" : std::string(": ") + name + " is " + found + ", expected " + *expected;
  }

  std::string root_;
  HashFunction md5_{"MD5"};
  HashFunction sha256_{"SHA256"};
};

}  // namespace

SLUICE_PLUGIN("verify-file", "1.0.0", VerifyFile)
