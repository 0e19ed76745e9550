#include "host/plugin/sealed_file.hpp"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/text/hex.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace sluice::plugin {

namespace {

constexpr std::size_t kChunk = 64 * 1024;
constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

Error failed(const std::string& what) { return {ErrorCode::invalid, what + ": " + std::strerror(errno)}; }

int memory_file(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1).substr(0, 200);
  const int made = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // Kernels before 6.3 do not know that a file in memory may be one that is not to be executed.
  return made >= 0 || errno != EINVAL ? made : ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(static_cast<std::size_t>(written < 0 ? 0 : written));
  }
  return true;
}

using Hash = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

std::string hex_of(EVP_MD_CTX* hash) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_DigestFinal_ex(hash, digest.data(), &size) != 1) {
    return {};
  }
  return to_hex(std::span(digest).first(size));
}

/// Copies to the end of `from`; the digest of what was copied.
Result<std::string> copy_and_hash(int from, int to) {
  const Hash hash(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  if (hash == nullptr || EVP_DigestInit_ex(hash.get(), EVP_sha256(), nullptr) != 1) {
    return Error(ErrorCode::invalid, "cannot be compared with its sha256: OpenSSL offers no SHA-256");
  }
  std::vector<char> buffer(kChunk);
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return failed("cannot be read");
    }
    if (got == 0) {
      break;
    }
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
    if (!write_all(to, bytes)) {
      return failed("cannot be copied into memory, to compare it with its sha256");
    }
    if (EVP_DigestUpdate(hash.get(), bytes.data(), bytes.size()) != 1) {
      return Error(ErrorCode::invalid, "cannot be compared with its sha256: OpenSSL cannot compute SHA-256");
    }
  }
  std::string digest = hex_of(hash.get());
  if (digest.empty()) {
    return Error(ErrorCode::invalid, "cannot be compared with its sha256: OpenSSL cannot compute SHA-256");
  }
  return digest;
}

}  // namespace

Result<std::shared_ptr<const SealedFile>> SealedFile::copy_of(const std::string& file) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!from.open()) {
    return failed("cannot be read");
  }
  Descriptor to(memory_file(file));
  if (!to.open()) {
    return failed("cannot be copied into memory, to compare it with its sha256");
  }
  SLUICE_TRY(digest, copy_and_hash(from.get(), to.get()));
  if (::fcntl(to.get(), F_ADD_SEALS, kSeals) != 0) {
    return failed("cannot be sealed in memory");
  }
  return std::shared_ptr<const SealedFile>(new SealedFile(to.release(), std::move(*digest)));
}

SealedFile::~SealedFile() { ::close(descriptor_); }

}  // namespace sluice::plugin
