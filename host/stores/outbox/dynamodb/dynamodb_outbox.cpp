#include "host/stores/outbox/dynamodb/dynamodb_outbox.hpp"

#include <utility>

#include "host/stores/outbox/dynamodb/admin.hpp"
#include "host/stores/outbox/dynamodb/lease_book.hpp"
#include "host/stores/outbox/dynamodb/reader.hpp"

namespace sluice::queue::outbox {
namespace {

class DynamoDbOutbox final : public Database {
 public:
  DynamoDbOutbox(Settings settings, dynamo::Client& client, const Clock& clock, Random& random)
      : place_(std::move(settings), client, clock, random), clock_(clock) {}

  Result<std::unique_ptr<LockSession>> open_locks(Deadline /*deadline*/) override {
    // A heartbeat costs a write unit: no more of them than the lease needs.
    const Settings& settings = place_.settings();
    const LeaseLocks::Settings leases{settings.name, settings.connect.lease, settings.connect.lease / 3};
    return std::unique_ptr<LockSession>(
        std::make_unique<LeaseLocks>(std::make_unique<DynamoDbLeaseBook>(place_), leases, clock_, place_.random()));
  }
  Result<std::unique_ptr<ReadSession>> open_reader(bool /*listen*/, Deadline /*deadline*/) override {
    return std::unique_ptr<ReadSession>(std::make_unique<DynamoDbReader>(place_));
  }
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline /*deadline*/) override {
    return std::unique_ptr<AdminSession>(std::make_unique<DynamoDbAdmin>(place_));
  }

  std::string ddl() const override;

 private:
  OutboxPlace place_;
  const Clock& clock_;
};

// CloudFormation is what people keep such a table in.
std::string DynamoDbOutbox::ddl() const {
  const std::string& id = place_.columns().id;
  return "# An outbox that rows are put into, in the transaction that makes the event, with\n"
         "#   bucket: \"0\" to \"" +
         std::to_string(place_.table().buckets - 1) +
         "\", the same for all rows of one aggregate (a hash of its id)\n"
         "#   " +
         id + ": a number that grows, such as a snowflake or the time in microseconds\n#   " +
         place_.columns().aggregate_type + ", " + place_.columns().aggregate_id + ", " + place_.columns().event + ", " +
         place_.columns().payload +
         "\n# A row that has been sent is deleted.\n"
         "Resources:\n"
         "  Outbox:\n"
         "    Type: AWS::DynamoDB::Table\n"
         "    DeletionPolicy: Retain\n"
         "    Properties:\n"
         "      TableName: " +
         place_.table().table +
         "\n"
         "      BillingMode: PAY_PER_REQUEST\n"
         "      AttributeDefinitions:\n"
         "        - {AttributeName: bucket, AttributeType: S}\n"
         "        - {AttributeName: " +
         id +
         ", AttributeType: N}\n"
         "      KeySchema:\n"
         "        - {AttributeName: bucket, KeyType: HASH}\n"
         "        - {AttributeName: " +
         id + ", KeyType: RANGE}\n";
}

}  // namespace

std::unique_ptr<Database> make_dynamodb_outbox(Settings settings, dynamo::Client& client, const Clock& clock,
                                               Random& random) {
  return std::make_unique<DynamoDbOutbox>(std::move(settings), client, clock, random);
}

}  // namespace sluice::queue::outbox
