#pragma once

#include <boost/json.hpp>
#include <string>
#include <unordered_map>

#include "tests/support/dynamodb_model/operations.hpp"

namespace sluice::test::model {

/// Transactions of one database, with the tokens that make them idempotent for ten minutes. Throws Failures.
class Transactions {
 public:
  /// How long a transaction is at work on its items. Writes of others conflict with it in this time.
  void set_span(Duration span) { span_ = span; }
  Duration span() const { return span_; }

  std::string write(Context& context, const boost::json::value& request);
  std::string execute(Context& context, const boost::json::value& request);
  static std::string get(Context& context, const boost::json::value& request);

 private:
  struct Part;
  struct Token {
    std::string request;
    Usage replay;  // what asking again costs
    SteadyTime until;
    SteadyTime finished;
  };
  std::string run(Context& context, const Arguments& arguments, std::vector<Part> parts);
  bool replayed(Context& context, const std::string& token, const std::string& request);
  void remember(Context& context, const std::string& token, const std::string& request, Usage replay);
  void forget_old(SteadyTime now);

  Duration span_{};
  std::unordered_map<std::string, Token> tokens_;
  std::size_t forget_at_ = 4096;
};

}  // namespace sluice::test::model
