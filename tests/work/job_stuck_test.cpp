// Handlers that do not return, and threads that cannot be made.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "host/work/dispatcher.hpp"
#include "host/work/job.hpp"
#include "tests/isolation/sanitized.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;

// A handler that hangs at the gate whenever it is given "hang".
Script hangs(Gate& gate) {
  return {.handle =
              [&gate](const std::string& id, const sluice_context&) {
                if (id == "hang") {
                  gate.pass();
                }
                return done();
              },
          .create = {},
          .concurrent = false};
}

void short_timeout(JobSpec& spec) {
  spec.config.timeout = 10ms;
  spec.stuck_grace = 10ms;
  spec.config.retry.base = spec.config.retry.max = 1h;
}

TEST(JobStuck, IsReportedByNameAndItsMessageIsSettled) {
  Gate gate;
  JobRig rig(hangs(gate), short_timeout);
  rig.send({"hang"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.retried == 1; }));
  ASSERT_EQ(rig.job->activity().stuck().size(), 1U);
  EXPECT_EQ(rig.job->activity().stuck().front().message_id, "hang");
  const auto stored = rig.desk.get("orders", "hang", Deadline::never());
  EXPECT_EQ(stored->failure.error.find("timed out: the handler did not return within"), 0U) << stored->failure.error;
  EXPECT_EQ(stored->marks, queue::core::kSuspect) << "its next run hurts nobody but itself";
  EXPECT_EQ(rig.stats().in_flight, 0U);
  rig.job->hard_stop();
  const JobActivity report = rig.job->drain(rig.in(1h));
  EXPECT_EQ(report.ledger.stranded, 0U);
  EXPECT_EQ(report.handlers_running(), 1U);
  EXPECT_FALSE(rig.job->at_rest());
  gate.open();
  ASSERT_TRUE(rig.await_that([&] { return rig.job->at_rest(); }));
}

TEST(JobStuck, GivesItsSlotBackWithANewInstance) {
  Gate gate;
  JobRig rig(hangs(gate), [](JobSpec& spec) {
    short_timeout(spec);
    spec.config.concurrency = 1;
  });
  rig.send({"hang"});
  rig.job->start();
  ASSERT_TRUE(gate.await_arrivals(1));
  rig.send_many(20);
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 20; }));
  EXPECT_EQ(rig.record().instances, 2);
  EXPECT_EQ(rig.job->activity().stuck().size(), 1U);
  EXPECT_FALSE(rig.job->activity().out_of_workers);
  gate.open();
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().stuck().empty(); }));
  ASSERT_TRUE(rig.await_that([&] { return rig.record().destroyed == 1; })) << "its worker is not needed any more";
}

TEST(JobStuck, SoManyWorkersAreReplacedAndNoMore) {
  Gate gate;
  JobRig rig(deaf(gate), [](JobSpec& spec) {
    short_timeout(spec);
    spec.config.concurrency = 1;
  });
  rig.send_many(10);
  rig.job->start();
  ASSERT_TRUE(rig.await_that([&] { return rig.job->activity().out_of_workers; }));
  EXPECT_EQ(rig.job->activity().stuck().size(), kMinLossLimit);
  EXPECT_EQ(rig.record().started.size(), kMinLossLimit);
  gate.open();
  // They come back, and the job goes on.
  ASSERT_TRUE(rig.await_that([&] { return !rig.job->activity().out_of_workers; }));
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done >= 6; }));
}

TEST(JobStuck, AMessageThatHangsTakesOneWorker) {
  Gate gate;
  JobRig rig(hangs(gate), [](JobSpec& spec) {
    short_timeout(spec);
    spec.config.retry.base = spec.config.retry.max = 1ms;
    spec.config.concurrency = 4;
  });
  rig.send({"hang"});
  rig.job->start();
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.rejected == 1; }));
  EXPECT_EQ(rig.record().started["hang"], 3) << "once on a worker, twice as a suspect on a lane";
  rig.send_many(20);
  ASSERT_TRUE(rig.await([](const auto& ledger) { return ledger.done == 20; }));
  gate.open();
}

TEST(JobStart, NamesTheLimitWhenThereAreNoThreads) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "a sanitizer needs memory of its own for each thread, and ends the process where there is none";
#endif
  JobRig rig({.handle = {}, .create = {}}, [](JobSpec& spec) { spec.config.concurrency = config::kMaxConcurrency; });
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  std::ifstream sizes("/proc/self/statm");
  rlim_t pages = 0;
  sizes >> pages;
  // Room for some.
  const rlimit few{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + (512U << 20U), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &few), 0);
  const auto started = rig.job->start();
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code(), ErrorCode::unavailable);
  EXPECT_EQ(started.error().message().find("cannot make 1027 threads for job"), 0U) << started.error().message();
  EXPECT_NE(started.error().message().find("lower concurrency"), std::string::npos);
  EXPECT_TRUE(rig.job->at_rest()) << "what was made is stopped again";
}

}  // namespace
}  // namespace sluice::work
