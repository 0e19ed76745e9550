#pragma once

#include <boost/core/noncopyable.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "dynamo/credentials/credentials.hpp"
#include "dynamo/error.hpp"
#include "dynamo/signing/digest.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// What is signed for.
struct SigningOptions {
  std::string region;
  std::string service = "dynamodb";
};

/// A request in parts, as it goes over the wire. Borrows them.
struct SignableRequest {
  std::string_view method = "POST";
  std::string_view path = "/";
  std::string_view query{};  ///< without '?'
  Headers& headers;          ///< with Host; all signed, but for those that proxies change (User-Agent, Connection, ...)
  std::string_view body{};
};

/// The canonical form of a request and what was computed on the way.
struct CanonicalRequest {
  std::string text;
  std::string signed_headers;  ///< "host;x-amz-date"
  std::string payload_hash;    ///< lower-case hex
};

/// The stages of AWS Signature Version 4, each a pure function. `request` already carries what the way of signing adds
/// (see Signer). ErrorKind::validation for a request that must not be signed: a CR, LF or NUL in a header's name or
/// value, an empty name, no Host.
Result<CanonicalRequest> canonical_request(const SignableRequest& request);
/// "20150830/us-east-1/service/aws4_request"
std::string credential_scope(WallTime time, const SigningOptions& options);
std::string string_to_sign(std::string_view canonical_request, WallTime time, const SigningOptions& options);
/// "20150830T123600Z"
std::string signing_timestamp(WallTime time);
std::string sha256_hex(std::string_view bytes);

/// A derived key; wiped when it goes.
class SigningKey {
 public:
  SigningKey() = default;
  /// `date` is eight digits.
  SigningKey(std::string_view secret, std::string_view date, std::string_view region, std::string_view service);
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();

  /// The signature in lower-case hex.
  std::string sign(std::string_view string_to_sign) const;

 private:
  Digest bytes_{};
};

/// Signs requests for one region and service.
///
/// Thread-safe. The time is always an argument. Keeps the derived key of the last secret and day; it and all other
/// intermediate keys are wiped from memory when they are no longer needed.
class Signer : boost::noncopyable {
 public:
  explicit Signer(SigningOptions options);
  ~Signer();

  /// Adds to the request's headers, in the order of AWS's own: X-Amz-Security-Token (where there is one), X-Amz-Date,
  /// Authorization. Errors as canonical_request, with some of them added. To sign an attempt anew, start from the
  /// unsigned request. Nothing on success.
  std::optional<Error> sign(const SignableRequest& request, const Credentials& credentials, WallTime time) const;
  /// The same of a request as it will be sent, which gets its Host too, as its URL has it.
  std::optional<Error> sign(HttpRequest& request, const Credentials& credentials, WallTime time) const;

 private:
  std::string signature(const std::string& secret, WallTime time, std::string_view text) const;

  // Fixed after construction.
  const SigningOptions options_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  mutable std::string cached_secret_ SLUICE_GUARDED_BY(mutex_);
  mutable std::string cached_date_ SLUICE_GUARDED_BY(mutex_);
  mutable SigningKey cached_key_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::dynamo
