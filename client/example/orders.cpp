// Produces orders, then works one off by hand. `orders FILE` uses a queue in a file; `orders` alone the DynamoDB table
// `orders` in the region and with the credentials of the environment.
#include <iostream>
#include <sluice/client.hpp>

namespace client = sluice::client;

int main(int argc, char** argv) {
  auto queue = argc > 1 ? client::QueueClient::open(client::SqliteQueue{.path = argv[1], .queue = "orders"})
                        : client::QueueClient::open(client::DynamoDbQueue{.table = "orders"});
  if (!queue) {
    std::cerr << queue.error().message() << '\n';
    return 1;
  }

  client::Producer producer(*queue);
  // Returns at once; the messages leave in batches of 25.
  for (int n = 1; n <= 100; ++n) {
    producer.produce_async("{\"order\": " + std::to_string(n) + "}", {.content_type = "application/json"},
                           [](const client::ProduceResult& sent) {
                             if (!sent) {
                               std::cerr << "not sent: " << sent.error().message() << '\n';
                             }
                           });
  }
  // With an id of its own, not to be worked on for an hour, and durable once this has returned.
  const auto reminder = producer.produce("send the invoice", {.id = "invoice-4711", .delay = std::chrono::hours(1)});
  std::cout << (reminder ? "sent " + *reminder : reminder.error().message()) << '\n';
  producer.close();

  auto received = queue->receive({.visibility_timeout = std::chrono::minutes(1)});
  if (!received) {
    std::cerr << received.error().message() << '\n';
    return 1;
  }
  std::cout << "received " << received->message.data << '\n';
  // By its receipt: fails if somebody else has received the message since.
  const auto removed = queue->delete_message(received->receipt);
  std::cout << (removed ? "done" : removed.error().message()) << '\n';

  const auto stats = queue->queue_stats();
  if (stats) {
    std::cout << stats->total_messages_in_queue << " messages, " << stats->total_messages_in_queue_ready << " ready\n";
  }
  return 0;
}
