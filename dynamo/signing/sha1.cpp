#include "dynamo/signing/sha1.hpp"

#include <openssl/evp.h>

#include <array>
#include <span>

#include "base/assert.hpp"
#include "base/text/hex.hpp"

namespace sluice::dynamo {

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  SLUICE_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  return sluice::to_hex(std::span(digest).first(size));
}

}  // namespace sluice::dynamo
