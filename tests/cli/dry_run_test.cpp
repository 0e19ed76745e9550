// `sluice dry-run`, by the real binary.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "tests/cli/run_binary.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;

constexpr const char* kTransfer = R"({"from":"a'b","to":"b","amount":10})";

/// A host with the shipped example of effects; on DynamoDB nothing is asked of the store but the message.
class TransferFolder : public HostFolder {
 public:
  TransferFolder()
      : HostFolder("[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.transfers]\n[queues.receipts]\n") {
    std::filesystem::copy_file(SLUICE_TRANSFER_PLUGIN, path() + "/plugins/transfer.so");
    write("jobs.d/transfers.toml", "[job]\nqueue = \"transfers\"\nhandler = \"transfer\"\n");
  }
  void send(const std::string& id, const std::string& body) const {
    const Finished sent = run({"send", "--queue", "transfers", "--id", id, "--data", body});
    ASSERT_EQ(sent.exit_code, 0) << sent.err;
  }
};

TEST(DryRun, ShowsTheTransactionInSql) {
  const TransferFolder folder;
  folder.send("T-1", kTransfer);
  const Finished shown = folder.run({"dry-run", "T-1", "--job", "transfers", "--output", "text"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto lines = shown.out_lines();
  EXPECT_EQ(lines[0], "message T-1 of transfers, job transfers: done");
  EXPECT_EQ(lines[1], "one transaction in SQLite, 4 of at most 100 actions:");
  EXPECT_EQ(lines[2], std::string("   1  send to receipts: ") + kTransfer);
  EXPECT_THAT(
      shown.out,
      HasSubstr(
          "   2  UPDATE accounts SET balance = balance - ?1 WHERE id = ?2 AND balance >= ?1  -- debit, or reject\n"
          "       ?1 = 10\n"
          "       ?2 = 'a''b'\n"
          "       rows: 1\n"));
  EXPECT_THAT(shown.out, HasSubstr("   4  remove message T-1 from transfers, if it is still ours\n"));
}

TEST(DryRun, SaysThatNobodyKnowsTheQueueOfAMessage) {
  const TransferFolder folder;
  folder.write("host.toml", "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.receipt]\n");
  folder.send("T-1", kTransfer);
  const Finished shown = folder.run({"dry-run", "T-1", "--job", "transfers", "--output", "text"});
  EXPECT_THAT(shown.out, HasSubstr("knows a queue \"receipts\"; did you mean \"receipt\"?"));
}

TEST(DryRun, PrintsJsonAndCommitsNothing) {
  const TransferFolder folder;
  folder.send("T-1", kTransfer);
  const Finished shown = folder.run({"dry-run", "T-1", "--job", "transfers"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto document = boost::json::parse(shown.out).as_object();
  EXPECT_EQ(document.at("outcome").as_string(), "done");
  const auto& transaction = document.at("transaction").as_object();
  EXPECT_EQ(transaction.at("store").as_string(), "sqlite");
  EXPECT_EQ(transaction.at("actions").to_number<int>(), 4);
  EXPECT_EQ(transaction.at("messages").at(0).at("attributes").at("transfer").as_string(), "T-1");
  const auto& debit = transaction.at("writes").at(0);
  EXPECT_EQ(debit.at("label").as_string(), "debit");
  EXPECT_EQ(debit.at("on_refusal").as_string(), "reject");
  EXPECT_EQ(debit.at("rows").to_number<int>(), 1);
  EXPECT_EQ(debit.at("parameters").at(0).to_number<int>(), 10);
  EXPECT_FALSE(transaction.at("remembers_key").as_bool()) << "the job has no idempotency";
  const Finished stats = folder.run({"stats", "--queue", "transfers"});
  EXPECT_THAT(stats.out, HasSubstr("\"total\": 1")) << "the message is where it was";
  EXPECT_EQ(folder.run({"get", "--queue", "receipts", "x"}).exit_code, 1);
}

TEST(DryRun, ShowsOutcomesThatCommitNothing) {
  const TransferFolder folder;
  folder.send("T-1", R"({"from":"a","to":"a","amount":1})");
  folder.send("T-2", R"({"from":"a"})");
  const Finished rejected = folder.run({"dry-run", "T-1", "--job", "transfers", "--output", "text"});
  EXPECT_EQ(rejected.exit_code, 0);
  EXPECT_THAT(rejected.out, HasSubstr("reject: a transfer wants two accounts"));
  EXPECT_THAT(rejected.out, HasSubstr("nothing would be committed with it\n"));
  const Finished fault = folder.run({"dry-run", "T-2", "--job", "transfers"});
  EXPECT_EQ(boost::json::parse(fault.out).at("outcome").as_string(), "fault");
  EXPECT_TRUE(boost::json::parse(fault.out).at("transaction").is_null());
}

TEST(DryRun, FindsTheMessageInAnyQueueOfItsJob) {
  const TransferFolder folder;
  folder.write("jobs.d/transfers.toml",
               "[job]\nname = \"both\"\nqueues = [\"receipts:2\", \"transfers:1\"]\nhandler = \"transfer\"\n");
  folder.send("T-1", kTransfer);
  const Finished shown = folder.run({"dry-run", "T-1", "--job", "both", "--output", "text"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(shown.out_lines()[0], "message T-1 of transfers, job both: done");
  EXPECT_THAT(shown.out, HasSubstr("   4  remove message T-1 from transfers, if it is still ours\n"));
  EXPECT_EQ(folder.run({"dry-run", "T-9", "--job", "both"}).exit_code, 1);
}

TEST(DryRun, SaysWhatIsNotThere) {
  const TransferFolder folder;
  folder.send("T-1", kTransfer);
  const Finished message = folder.run({"dry-run", "T-9", "--job", "transfers"});
  EXPECT_EQ(message.exit_code, 1);
  EXPECT_THAT(message.err, HasSubstr("T-9"));
  const Finished job = folder.run({"dry-run", "T-1", "--job", "nobody"});
  EXPECT_EQ(job.exit_code, 78);
  EXPECT_THAT(job.err, HasSubstr("no job is called 'nobody'"));
}

}  // namespace
}  // namespace sluice::test
