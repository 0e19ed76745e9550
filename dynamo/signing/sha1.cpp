#include "dynamo/signing/sha1.hpp"

#include <openssl/evp.h>

#include <array>

#include "base/assert.hpp"

namespace sluice::dynamo {

std::string sha1_hex(std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  SLUICE_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  std::string out;
  for (unsigned int i = 0; i < size; ++i) {
    out += {kHex[digest[i] >> 4U], kHex[digest[i] & 0xFU]};
  }
  return out;
}

}  // namespace sluice::dynamo
