// Numbers 49 to 51 of DynamoMQ's own tests: the producer hands on what it is given.
#include "tests/client/client_rig.hpp"

namespace sluice::client {
namespace {

class ConformanceProducer : public ClientTest {};

TEST_P(ConformanceProducer, N49_HandsOnIdDataAndDelay) {
  Producer producer(client(), {.linger = 0ms, .id_generator = [] { return "A-101"; }});
  const ProduceResult sent = producer.produce("{\"n\":1}", {.delay = 10s, .content_type = "application/json"});
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(*sent, "A-101");
  const Message message = get("A-101");
  EXPECT_EQ(message.data, "{\"n\":1}");
  EXPECT_EQ(message.sent_at, kT0 + 10s);
}

TEST_P(ConformanceProducer, N50_NothingButDefaultsIsEnough) {
  Producer producer(client(), {.linger = 0ms});
  const ProduceResult sent = producer.produce({});
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(sent->size(), 36U);
  EXPECT_EQ(get(*sent).data, "");
  EXPECT_EQ(get(*sent).sent_at, kT0);
}

TEST_P(ConformanceProducer, N51_TheClientsErrorIsTheProducers) {
  seed_ready("A-101");
  Producer producer(client(), {.linger = 0ms, .id_generator = [] { return "A-101"; }});
  EXPECT_EQ(error_name(producer.produce("x")), "IDDuplicatedError");
  EXPECT_EQ(error_name(producer.produce_async("x").get()), "IDDuplicatedError");
}

TEST_P(ConformanceProducer, N51_AGeneratorOfNothingIsAnError) {
  Producer producer(client(), {.linger = 0ms, .id_generator = [] { return std::string(); }});
  EXPECT_EQ(error_name(producer.produce("x")), "IDNotProvidedError");
}

SLUICE_ON_BOTH_STORES(ConformanceProducer);

}  // namespace
}  // namespace sluice::client
