// Structs are written with the fields that one means and no others: no compiler is to warn of the rest.
#include <sluice/client.hpp>

namespace client = sluice::client;

void each_field_alone(client::QueueClient& queue);

void each_field_alone(client::QueueClient& queue) {
  (void)queue.send({.id = "A-101"});
  (void)queue.send(client::NewMessage{.data = "x"});
  (void)queue.replace({.id = "A-101"});
  (void)queue.list({.queue_type = client::QueueType::dlq});
  (void)queue.receive({.queue_type = client::QueueType::dlq});
  client::Message message{.data = "x"};
  message.failure = {.error = "no such customer"};
  (void)queue.replace(message);
  (void)queue.delete_message(client::Receipt{.version = 2});
  client::Producer producer(queue, {.max_messages = 3});
  (void)producer.produce("x", {.group = "g"});
  (void)client::QueueClient::open(client::DynamoDbQueue{.endpoint = "http://127.0.0.1:1"}, {.use_fifo = true});
}
