#include "digest.hpp"

#include <new>

namespace {

void require(int result) {
  if (result != 1) {
    throw std::bad_alloc();  // With a function that was fetched, memory is all these calls can lack.
  }
}

}  // namespace

HashFunction::HashFunction(const char* name) : function_(EVP_MD_fetch(nullptr, name, nullptr)) {}

Digest::Digest(const HashFunction& function) : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr ? EVP_DigestInit_ex2(context_.get(), function.get(), nullptr) : 0);
}

void Digest::update(const char* bytes, std::size_t size) { require(EVP_DigestUpdate(context_.get(), bytes, size)); }

std::string Digest::finish() {
  constexpr char kHex[] = "0123456789abcdef";
  unsigned char bytes[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  require(EVP_DigestFinal_ex(context_.get(), bytes, &size));
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    text += {kHex[bytes[i] >> 4U], kHex[bytes[i] & 15U]};
  }
  return text;
}
