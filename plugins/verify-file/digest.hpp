#pragma once

#include <openssl/evp.h>

#include <cstddef>
#include <memory>
#include <string>

/// A hash function that OpenSSL offers. Fetched once; digests of it may be made on any thread.
class HashFunction {
 public:
  /// `name` as OpenSSL calls it, such as "SHA256".
  explicit HashFunction(const char* name);
  /// False when this machine's OpenSSL does not offer it, as MD5 where only FIPS functions are allowed.
  bool available() const { return function_ != nullptr; }
  const EVP_MD* get() const { return function_.get(); }

 private:
  struct Free {
    void operator()(EVP_MD* function) const { EVP_MD_free(function); }
  };
  std::unique_ptr<EVP_MD, Free> function_;
};

/// One hash in the making. Throws std::bad_alloc when OpenSSL has no memory.
class Digest {
 public:
  explicit Digest(const HashFunction& function);
  void update(const char* bytes, std::size_t size);
  /// In lower-case hexadecimal.
  std::string finish();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};
