// When a transaction is tried again, on a server that is none.

#include <gmock/gmock.h>

#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox {
namespace {

using ::testing::ElementsAre;

class Script final : public SqlConnection {
 public:
  Result<Answer> run(const std::string& statement, Deadline /*deadline*/) override {
    statements.push_back(statement);
    return statement == fails ? Result<Answer>(Error(ErrorCode::unavailable, "gone")) : Answer();
  }
  Result<bool> stream(const std::string& /*statement*/, const TakeRow& /*take*/, Deadline /*deadline*/) override {
    return true;
  }
  Result<std::vector<Answer>> run_together(std::span<const std::string> some, Deadline /*deadline*/) override {
    return std::vector<Answer>(some.size());
  }

  std::vector<std::string> statements;
  std::string fails;
};

TEST(SqlTransaction, IsTriedAgainAfterADeadlockWhateverTheServer) {
  Script connection;
  int times = 0;
  const auto deadlock_once = [&]() -> Result<void> {
    return ++times == 1 ? Result<void>(Error(ErrorCode::throttled, "a deadlock")) : Result<void>();
  };
  EXPECT_TRUE(in_transaction(connection, deadlock_once, Deadline::never()));
  EXPECT_THAT(connection.statements, ElementsAre("BEGIN", "ROLLBACK", "BEGIN", "COMMIT"));
}

TEST(SqlTransaction, IsGivenUpInTheEndAndAtOnceForAnythingElse) {
  for (const auto& [code, tries] : {std::pair(ErrorCode::throttled, 4), std::pair(ErrorCode::denied, 1)}) {
    Script connection;
    int times = 0;
    const auto fails = [&, code = code]() -> Result<void> {
      ++times;
      return Error(code, "no");
    };
    EXPECT_EQ(in_transaction(connection, fails, Deadline::never()).error().code(), code);
    EXPECT_EQ(times, tries);
  }
}

TEST(SqlTransaction, NobodyKnowsWhatBecameOfACommitWhoseAnswerWasLost) {
  Script connection;
  const auto nothing = []() -> Result<void> { return {}; };
  connection.fails = "COMMIT";
  EXPECT_EQ(in_transaction(connection, nothing, Deadline::never()).error().code(), ErrorCode::unknown_outcome);
  connection.fails = "BEGIN";
  EXPECT_EQ(in_transaction(connection, nothing, Deadline::never()).error().code(), ErrorCode::unavailable);
}

}  // namespace
}  // namespace sluice::queue::outbox
