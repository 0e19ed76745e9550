// The real transport through a gate that breaks connections. Every test ends with "and then it recovers".

#include <gmock/gmock.h>

#include "tests/dynamo/transport/transport_support.hpp"

namespace sluice::dynamo {
namespace {

using test::Fault;
using test::TcpGate;
using testing::HasSubstr;

constexpr auto kShort = std::chrono::milliseconds(50);

void expect_recovered(RunningTransport& running, const TcpGate& gate) {
  const auto result = running.post(gate.url(), "again");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->body, "again");
}

TEST(CurlChaos, ARefusedConnectionHasNoEffectAndSaysWhere) {
  const auto gate = echo_gate();
  RunningTransport running;
  ASSERT_TRUE(running.post(gate->url()));
  gate->close();
  for (int i = 0; i < 3; ++i) {
    const auto result = running.post(gate->url());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind, ErrorKind::transport);
    EXPECT_FALSE(result.error().outcome_unknown);
    EXPECT_EQ(result.error().message,
              "cannot connect to " + gate->url() + ": connection refused; is the endpoint right and running?");
  }
  gate->open();
  expect_recovered(running, *gate);
}

TEST(CurlChaos, AnUnknownHostHasNoEffect) {
  RunningTransport running;
  const auto result = running.post("http://no-such-host.invalid:8000/");
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::transport);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_THAT(result.error().message, HasSubstr("cannot find the host of http://no-such-host.invalid:8000"));
  const auto gate = echo_gate();
  expect_recovered(running, *gate);
}

TEST(CurlChaos, AFailedTlsHandshakeHasNoEffect) {
  TcpGate gate([](const std::string&) { return TcpGate::response(200, "not TLS"); });
  RunningTransport running;
  // What the handshake sends is no HTTP request, so the gate never answers it: only the time-out ends it.
  HttpRequest request;
  request.url = "https://127.0.0.1:" + std::to_string(gate.port());
  request.connect_timeout = kShort;
  const auto result = running.send(std::move(request)).get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::transport);
  EXPECT_FALSE(result.error().outcome_unknown);
  EXPECT_EQ(gate.requests(), 0U);
  EXPECT_TRUE(running.post(gate.url()));
}

TEST(CurlChaos, AResetBeforeTheRequestIsNotRepeatedByTheTransport) {
  const auto gate = echo_gate();
  gate->break_next(Fault::reset_on_accept);
  RunningTransport running;
  const auto result = running.post(gate->url());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::transport);
  EXPECT_EQ(gate->connections(), 1U);
  expect_recovered(running, *gate);
}

TEST(CurlChaos, AStallTimesOutWithTheOutcomeUnknown) {
  const auto gate = echo_gate();
  gate->break_next(Fault::stall);
  RunningTransport running;
  const auto result = running.post(gate->url(), "{}", kShort);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::timeout);
  EXPECT_TRUE(result.error().outcome_unknown);
  EXPECT_EQ(result.error().message.substr(0, 22 + gate->url().size()), "no answer from " + gate->url() + " within");
  expect_recovered(running, *gate);
}

class CurlChaosAfterSending : public testing::TestWithParam<Fault> {};

TEST_P(CurlChaosAfterSending, LeavesTheOutcomeUnknownOnAFreshConnection) {
  const auto gate = echo_gate();
  gate->break_next(GetParam());
  RunningTransport running;
  const auto result = running.post(gate->url(), "0123456789");
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().outcome_unknown) << result.error().message;
  EXPECT_EQ(gate->requests(), 1U);
  expect_recovered(running, *gate);
}

// libcurl would send the request once more by itself here, on a fresh connection.
TEST_P(CurlChaosAfterSending, LeavesTheOutcomeUnknownOnAReusedConnectionAndSendsOnce) {
  const auto gate = echo_gate();
  RunningTransport running;
  ASSERT_TRUE(running.post(gate->url()));
  gate->break_next(GetParam());
  const auto result = running.post(gate->url(), "0123456789");
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().outcome_unknown) << result.error().message;
  EXPECT_EQ(gate->requests(), 2U);
  expect_recovered(running, *gate);
}

TEST_P(CurlChaosAfterSending, LeavesALargeRequestUnknownToo) {
  const auto gate = echo_gate();
  RunningTransport running;
  ASSERT_TRUE(running.post(gate->url()));
  gate->break_next(GetParam());
  const auto result = running.post(gate->url(), std::string(1U << 20U, 'x'));
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().outcome_unknown) << result.error().message;
  EXPECT_EQ(gate->requests(), 2U);
  expect_recovered(running, *gate);
}

INSTANTIATE_TEST_SUITE_P(Faults, CurlChaosAfterSending,
                         testing::Values(Fault::reset_after_request, Fault::close_after_request, Fault::cut_in_body,
                                         Fault::garbage, Fault::endless_header));

TEST(CurlChaos, GarbageIsSaidToBeNoHttp) {
  const auto gate = echo_gate();
  gate->break_next(Fault::garbage);
  RunningTransport running;
  const auto result = running.post(gate->url());
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::malformed_response);
  EXPECT_THAT(result.error().message, HasSubstr("does not answer in HTTP"));
  expect_recovered(running, *gate);
}

TEST(CurlChaos, ACorruptBodyArrivesAsItIs) {
  const auto gate = echo_gate();
  gate->break_next(Fault::corrupt);
  RunningTransport running;
  const auto result = running.post(gate->url(), "aaaa");
  ASSERT_TRUE(result);  // the checksum is the client's business
  EXPECT_EQ(result->body, "aa`a");
  expect_recovered(running, *gate);
}

TEST(CurlChaos, ASlowAnswerIsPutTogether) {
  const auto gate = echo_gate();
  gate->break_next(Fault::drip);
  RunningTransport running;
  const auto result = running.post(gate->url(), "slow but whole");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->body, "slow but whole");
  expect_recovered(running, *gate);
}

TEST(CurlChaos, ASlowAnswerDoesNotOutlastTheDeadline) {
  const auto gate = echo_gate();
  gate->break_next(Fault::drip);
  RunningTransport running;
  const auto result = running.post(gate->url(), std::string(4000, 'x'), kShort);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::timeout);
  EXPECT_TRUE(result.error().outcome_unknown);
  expect_recovered(running, *gate);
}

TEST(CurlChaos, AConnectionThatDiedWhileIdleIsReplacedWithoutAFailure) {
  const auto gate = echo_gate();
  RunningTransport running;
  ASSERT_TRUE(running.post(gate->url()));
  gate->close();
  gate->open();
  expect_recovered(running, *gate);
  EXPECT_EQ(gate->connections(), 2U);
}

}  // namespace
}  // namespace sluice::dynamo
