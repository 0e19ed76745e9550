#include "dynamo/signing/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <span>
#include <stdexcept>

#include "base/assert.hpp"
#include "base/text/hex.hpp"

namespace sluice::dynamo {

namespace {

// Fetched once and kept: a fetch for each call costs more than hashing a small request.
const EVP_MD* sha256_algorithm() {
  static const EVP_MD* const algorithm = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  if (algorithm == nullptr) {
    throw std::runtime_error("OpenSSL offers no SHA-256; requests cannot be signed");
  }
  return algorithm;
}

const unsigned char* data_of(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

Digest hmac(const void* key, std::size_t key_size, std::string_view bytes) {
  Digest digest;
  if (HMAC(sha256_algorithm(), key, static_cast<int>(key_size), data_of(bytes), bytes.size(), digest.data(), nullptr) ==
      nullptr) {
    throw std::runtime_error("OpenSSL offers no HMAC; requests cannot be signed");
  }
  return digest;
}

}  // namespace

Digest sha256(std::string_view bytes) {
  Digest digest;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, sha256_algorithm(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256; requests cannot be signed");
  }
  return digest;
}

RunningSha256::RunningSha256()
    : state_(EVP_MD_CTX_new(), [](void* state) { EVP_MD_CTX_free(static_cast<EVP_MD_CTX*>(state)); }) {
  if (EVP_DigestInit_ex(static_cast<EVP_MD_CTX*>(state_.get()), sha256_algorithm(), nullptr) != 1) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
}

void RunningSha256::add(std::string_view bytes) {
  SLUICE_ASSERT(EVP_DigestUpdate(static_cast<EVP_MD_CTX*>(state_.get()), bytes.data(), bytes.size()) == 1);
}

Digest RunningSha256::end() {
  Digest digest;
  SLUICE_ASSERT(EVP_DigestFinal_ex(static_cast<EVP_MD_CTX*>(state_.get()), digest.data(), nullptr) == 1);
  return digest;
}

Digest hmac_sha256(const Digest& key, std::string_view bytes) { return hmac(key.data(), key.size(), bytes); }
Digest hmac_sha256(std::string_view key, std::string_view bytes) { return hmac(key.data(), key.size(), bytes); }

std::string to_hex(const Digest& digest) { return sluice::to_hex(digest); }

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  SLUICE_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  return sluice::to_hex(std::span(digest).first(size));
}

void cleanse(Digest& digest) { OPENSSL_cleanse(digest.data(), digest.size()); }

void cleanse(std::string& secret) {
  // The whole allocation: shorter contents leave the rest of a longer secret behind.
  secret.resize(secret.capacity());
  OPENSSL_cleanse(secret.data(), secret.size());
  secret.clear();
}

}  // namespace sluice::dynamo
