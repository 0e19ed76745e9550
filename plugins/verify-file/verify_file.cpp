// Compares a file's hash with the one a message names.

#include <fcntl.h>
#include <linux/openat2.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <sluice/handler.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "publishing/publishing.hpp"

namespace {

using publishing::Descriptor;

void require(int result) {
  if (result != 1) {
    throw std::bad_alloc();  // With a function that was fetched, memory is all these calls can lack.
  }
}

/// A hash function. Null when this machine's OpenSSL does not offer it, as MD5 where only FIPS functions are allowed.
/// Fetched once; digests of it may be made on any thread.
using HashFunction = std::unique_ptr<EVP_MD, publishing::FreedBy<EVP_MD_free>>;

/// One hash in the making. Throws std::bad_alloc when OpenSSL has no memory.
class Digest {
 public:
  explicit Digest(const HashFunction& function) : context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr ? EVP_DigestInit_ex2(context_.get(), function.get(), nullptr) : 0);
  }
  void update(const char* bytes, std::size_t size) { require(EVP_DigestUpdate(context_.get(), bytes, size)); }
  /// In lower-case hexadecimal.
  std::string finish() {
    unsigned char bytes[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    require(EVP_DigestFinal_ex(context_.get(), bytes, &size));
    return publishing::hexadecimal(bytes, size);
  }

 private:
  std::unique_ptr<EVP_MD_CTX, publishing::FreedBy<EVP_MD_CTX_free>> context_;
};

// Non-blocking, so that a FIFO without a writer does not hang the worker; a regular file is not affected.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kMaxRaces = 8;

bool climbs(const std::string& path) { return ("/" + path + "/").find("/../") != std::string::npos; }

/// -1 with errno.
int open_beneath(int root, const std::string& path) {
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  // EAGAIN: something on the way was renamed meanwhile, and the kernel cannot vouch for the path.
  for (int i = 0; i < kMaxRaces && fd < 0 && (i == 0 || errno == EAGAIN); ++i) {
    fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  }
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) {
    return static_cast<int>(fd);
  }
  // Old kernels, and containers that forbid what they do not know: without "..", and only links can lead out.
  if (climbs(path)) {
    errno = EXDEV;
    return -1;
  }
  return ::openat(root, ("./" + path).c_str(), kFlags);
}

/// A regular file open for reading.
class File {
 public:
  /// Opens `path`; with a `root`, as a process would see it whose root folder that is: no "..", no link leads out of
  /// it. 0, or the errno that says why not; EISDIR for a folder, EINVAL for anything else that is no regular file.
  int open(const std::string& root, const std::string& path) {
    if (root.empty()) {
      file_.reset(::open(path.c_str(), kFlags));
    } else if (const Descriptor folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)); folder.open()) {
      file_.reset(open_beneath(folder.get(), path));
    }
    struct stat status {};
    if (!file_.open() || ::fstat(file_.get(), &status) != 0) {
      return errno;
    }
    if (S_ISDIR(status.st_mode)) {
      return EISDIR;
    }
    return S_ISREG(status.st_mode) ? 0 : EINVAL;
  }

  /// Reads on; `*size` is 0 at the end. 0, or an errno.
  int read(char* buffer, std::size_t capacity, std::size_t* size) {
    ssize_t got = -1;
    do {
      got = ::read(file_.get(), buffer, capacity);
    } while (got < 0 && errno == EINTR);
    *size = got < 0 ? 0 : static_cast<std::size_t>(got);
    return got < 0 ? errno : 0;
  }

 private:
  Descriptor file_;
};

/// What a message asks for. At least one hash is there, by its name, in lower-case hexadecimal.
struct Request {
  std::string path;
  std::map<std::string, std::string> hashes;
};

using nlohmann::json;

constexpr std::size_t kMaxBody = 64 * 1024;

json parse_object(std::string_view body) {
  if (body.size() > kMaxBody) {
    throw std::invalid_argument("the body is larger than " + std::to_string(kMaxBody) + " bytes");
  }
  json value;
  try {
    value = json::parse(body.begin(), body.end());
  } catch (const json::parse_error& error) {
    // what() is "[json.exception.parse_error.101] parse error at line 1, column 2: ..."
    const std::string what = error.what();
    const std::size_t label = what.find("] ");
    throw std::invalid_argument("the body is not JSON: " +
                                (label == std::string::npos ? what : what.substr(label + 2)));
  }
  if (!value.is_object()) {
    throw std::invalid_argument(std::string("the body is ") + value.type_name() +
                                R"(, not an object like {"path": "...", "sha256": "..."})");
  }
  return value;
}

std::optional<std::string> text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || found->is_null()) {
    return std::nullopt;
  }
  if (!found->is_string()) {
    throw std::invalid_argument(std::string("\"") + name + "\" is " + found->type_name() + ", not a string");
  }
  return found->get<std::string>();
}

std::optional<std::string> hash_member(const json& object, const char* name, std::size_t digits) {
  std::optional<std::string> hash = text_member(object, name);
  if (!hash) {
    return std::nullopt;
  }
  for (char& c : *hash) {
    c = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  const bool hexadecimal = hash->find_first_not_of("0123456789abcdef") == std::string::npos;
  if (hash->size() != digits || !hexadecimal) {
    throw std::invalid_argument(std::string("\"") + name + "\" is not a hash of " + std::to_string(digits) +
                                " hexadecimal digits");
  }
  return hash;
}

/// Reads `{"path": ..., "md5": ... or "sha256": ...}`; other members are ignored. Throws std::invalid_argument with
/// what is wrong with it.
Request parse_request(std::string_view body) {
  const json object = parse_object(body);
  const std::optional<std::string> path = text_member(object, "path");
  if (!path || path->empty()) {
    throw std::invalid_argument("the body has no \"path\"");
  }
  if (path->find('\0') != std::string::npos) {
    throw std::invalid_argument("\"path\" has a zero byte in it");
  }
  Request request{*path, {}};
  for (const auto& [name, digits] : {std::pair("md5", 32U), std::pair("sha256", 64U)}) {
    if (auto hash = hash_member(object, name, digits)) {
      request.hashes[name] = *std::move(hash);
    }
  }
  if (request.hashes.empty()) {
    throw std::invalid_argument("the body has neither \"md5\" nor \"sha256\"");
  }
  return request;
}

constexpr std::size_t kChunk = 64 * 1024;

std::string text_of(int error) { return std::generic_category().message(error); }

/// Errors that the same file will bring again, whoever tries; the others may pass (a network file system, a full table
/// of open files).
bool is_final(int error) {
  constexpr std::array kFinal{ENOENT, ENOTDIR, EISDIR, EINVAL, EACCES, EPERM, ELOOP, ENAMETOOLONG, EXDEV, ENXIO};
  return std::find(kFinal.begin(), kFinal.end(), error) != kFinal.end();
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

  explicit VerifyFile(const sluice::Options& values) : root_(publishing::existing_folder(values, "root")) {
    functions_["md5"].reset(EVP_MD_fetch(nullptr, "MD5", nullptr));
    functions_["sha256"].reset(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  }

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    std::optional<Request> request;
    try {
      request = parse_request(message.body());
    } catch (const std::invalid_argument& bad) {
      return sluice::reject(bad.what());
    }
    if (root_.empty() && request->path.front() != '/') {
      return sluice::reject("the path " + request->path +
                            " is relative; set the option \"root\" to the folder it starts from");
    }
    if (request->hashes.contains("md5") && functions_.at("md5") == nullptr) {
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
    std::map<std::string, Digest> digests;
    for (const auto& [name, expected] : request.hashes) {
      digests.emplace(name, functions_.at(name));
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
      for (auto& [name, digest] : digests) {
        digest.update(buffer.get(), size);
      }
    } while (size > 0);
    std::string wrong;
    for (auto& [name, digest] : digests) {
      const std::string& expected = request.hashes.at(name);
      if (const std::string found = digest.finish(); found != expected) {
        wrong += ": " + name + " is " + found + ", expected " + expected;
      }
    }
    return wrong.empty() ? sluice::done() : sluice::reject(request.path + wrong);
  }

  std::string root_;
  /// By the names that messages have for them.
  std::map<std::string, HashFunction> functions_;
};

}  // namespace

SLUICE_PLUGIN("verify-file", "1.0.0", VerifyFile)
