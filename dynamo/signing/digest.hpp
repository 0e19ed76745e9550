#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>

namespace sluice::dynamo {

using Digest = std::array<unsigned char, 32>;

/// SHA-256 and HMAC-SHA-256. Throw std::runtime_error when the cryptography library has neither, which only a broken or
/// locked-down installation can bring about.
Digest sha256(std::string_view bytes);
Digest hmac_sha256(const Digest& key, std::string_view bytes);
Digest hmac_sha256(std::string_view key, std::string_view bytes);

/// SHA-256 of what comes in pieces. A resource.
class RunningSha256 {
 public:
  RunningSha256();
  void add(std::string_view bytes);
  /// Of all of it. Once.
  Digest end();

 private:
  const std::shared_ptr<void> state_;
};

/// Lower-case.
std::string to_hex(const Digest& digest);

/// SHA-1 in lower-case hex. Only for the names of AWS's own cache files; no security rests on it.
std::string sha1_hex(std::string_view text);

/// Overwrites a secret in a way that the compiler does not remove.
void cleanse(Digest& digest);
void cleanse(std::string& secret);

}  // namespace sluice::dynamo
