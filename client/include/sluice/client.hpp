#pragma once

/// Producers and clients of queues in DynamoDB (tables of DynamoMQ v0.11.0) or in a file of the embedded store.
#include <sluice/client/error.hpp>
#include <sluice/client/message.hpp>
#include <sluice/client/producer.hpp>
#include <sluice/client/queue_client.hpp>
