#include <gmock/gmock.h>

#include "dynamo/client.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_random.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::dynamo {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AnyKeys final : public CredentialsProvider {
 public:
  Result<Credentials> get(Deadline) override {
    Credentials out;
    out.access_key_id = "AKID";
    out.secret_access_key = "secret";
    return out;
  }
  void refused(const Credentials&) override {}
};

struct ClientTimeout : testing::Test {
  /// What a read ends with when its last attempt runs out of time.
  std::string failure() {
    transport.answer(Error(ErrorKind::timeout, "no answer in time"));
    Client client({{.region = "eu-west-1", .endpoint = "http://127.0.0.1:8000"}, 2}, transport, keys, clock, random);
    const auto output = client.get_item({.table = "t", .key = {{"id", "a"}}}, Deadline::never());
    EXPECT_EQ(output.error().kind, ErrorKind::timeout);
    return output.error().message;
  }

  test::FakeTransport transport;
  AnyKeys keys;
  test::FakeClock clock;
  test::FakeRandom random;
};

TEST_F(ClientTimeout, NamesTheFailureBeforeIt) {
  transport.answer(500, R"({"__type":"x#InternalServerError","message":"the disk is full"})");
  EXPECT_THAT(failure(),
              AllOf(HasSubstr("no answer in time"), HasSubstr("an attempt before it"), HasSubstr("the disk is full")));
}

TEST_F(ClientTimeout, SpeaksForItselfWhenThereWasNoOther) {
  transport.answer(Error(ErrorKind::timeout, "no answer in time"));
  EXPECT_THAT(failure(), AllOf(HasSubstr("no answer in time"), Not(HasSubstr("before it"))));
}

}  // namespace
}  // namespace sluice::dynamo
