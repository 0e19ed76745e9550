#include "signature.hpp"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <stdexcept>

std::string hmac_sha256(std::string_view secret, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes, &size) == nullptr) {
    throw std::runtime_error("OpenSSL cannot make the signature");
  }
  std::string result;
  for (unsigned i = 0; i < size; ++i) {
    result += {kHex[bytes[i] >> 4U], kHex[bytes[i] & 15U]};
  }
  return result;
}
