#pragma once

#include <string>
#include <utility>

#include "dynamo/credentials/credentials.hpp"

namespace sluice::test::model {

/// Credentials that are always there; the model tells callers apart by their access keys. Thread-safe.
class FixedCredentials final : public dynamo::CredentialsProvider {
 public:
  explicit FixedCredentials(std::string access_key = "AKIDEXAMPLE") {
    credentials_.access_key_id = std::move(access_key);
    credentials_.secret_access_key = "secret";
  }
  dynamo::Result<dynamo::Credentials> get(Deadline) override { return credentials_; }

 private:
  dynamo::Credentials credentials_;
};

}  // namespace sluice::test::model
