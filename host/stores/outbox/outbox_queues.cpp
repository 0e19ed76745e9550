#include "host/stores/outbox/outbox_queues.hpp"

#include "base/mutex.hpp"
#include "host/queue/error_groups.hpp"

namespace sluice::queue::outbox {
namespace {

// What an overview looks at, for reasons of failures and for ids.
constexpr std::size_t kOverviewPage = 1000;
constexpr std::size_t kOverviewRows = 100'000;

/// An operator's side of an outbox. Its standard half is what has not been sent and has tries left, its DLQ half what
/// has none left; what was sent lies in neither. To remove a row is to mark it as sent without having published it: the
/// table is the application's, and only `prune` deletes. Content is never changed.
class OutboxOperator final : public Operator {
 public:
  /// `database` and `clock` outlive it.
  OutboxOperator(OutboxOptions options, Database& database, const Clock& clock)
      : options_(std::move(options)), database_(database), clock_(clock) {}

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override {
    SLUICE_TRY(found, find(id, deadline));
    if (found->sent_at && !options_.settings.config.compat) {
      return Error(ErrorCode::not_found, "row " + id + " of " + name() + " was sent and lies in no half any more");
    }
    SLUICE_TRY(known, origin(deadline));
    return message_of_row(*std::move(found), *known);
  }
  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    SLUICE_PASS_ON(inspected(deadline));
    ListRows wanted{
        .half = request.half, .newest_first = request.newest_first, .limit = request.limit, .payload = request.content};
    if (!request.cursor.empty()) {
      wanted.beyond = key_of_cursor(request.cursor, text_ids());
      if (!wanted.beyond) {
        return Error(ErrorCode::invalid, "the cursor is none of this outbox");
      }
    }
    SLUICE_TRY(rows, ask(deadline, [&](AdminSession& desk) { return desk.list(wanted, deadline); }));
    SLUICE_TRY(known, origin(deadline));
    ListPage page;
    page.next = rows->size() < request.limit ? "" : cursor_of(rows->back().row.key());
    for (StoredRow& row : *rows) {
      page.messages.push_back(message_of_row(std::move(row), *known));
    }
    return page;
  }
  Result<QueueStats> stats(const StatsRequest& request, Deadline deadline) override {
    const CountRequest wanted{.jobs = options_.jobs->all()};
    SLUICE_TRY(counts, ask(deadline, [&](AdminSession& desk) { return desk.count(wanted, deadline); }));
    QueueStats stats;
    if (request.half == Half::dlq) {
      stats.ready = counts->dead;
      return stats;
    }
    stats.ready = counts->ready;
    stats.delayed = counts->waiting;
    stats.excluded = counts->excluded;
    if (options_.observer) {
      options_.observer->excluded(counts->excluded);
    }
    if (counts->oldest) {
      stats.oldest_ready = clock_.wall_now() - *counts->oldest;
    } else if (counts->oldest_id) {
      stats.oldest_ready = oldest_since(*counts->oldest_id);
    }
    return stats;
  }
  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    SLUICE_TRY(counts, stats({.half = request.half}, deadline));
    QueueOverview overview{.counts = *counts};
    ErrorGroups groups(clock_.wall_now());
    ListRequest wanted{.half = request.half, .limit = kOverviewPage, .content = false};
    for (std::size_t seen = 0; seen < kOverviewRows; seen += kOverviewPage) {
      SLUICE_TRY(page, list(wanted, deadline));
      for (const StoredMessage& message : page->messages) {
        if (overview.first_ids.size() < request.ids) {
          overview.first_ids.push_back(message.message.id);
        }
        if (message.invisible_until && overview.first_in_flight_ids.size() < request.ids &&
            message.state(clock_.wall_now()) != MessageState::ready) {
          overview.first_in_flight_ids.push_back(message.message.id);
        }
        if (!message.failure.empty()) {
          groups.add(message.message.id, message.failure);
        }
      }
      wanted.cursor = page->next;
      if (page->next.empty() || (request.errors == 0 && overview.first_ids.size() >= request.ids)) {
        break;
      }
    }
    overview.errors = std::move(groups).finish(request.errors, overview.unlisted_errors);
    return overview;
  }
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override {
    std::vector<ChangeResult> results(changes.size());
    std::vector<RowEdit> wanted;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const auto id = key_of(changes[i].id);
      if (!id) {
        results[i] = {ChangeStatus::not_found, 0, no_message(name(), changes[i].id)};
      } else if (changes[i].action == ChangeAction::move_to_front) {
        results[i] = {ChangeStatus::failed, 0,
                      Error(ErrorCode::invalid, "rows of an outbox go out by id; none can be moved to the front")};
      } else {
        wanted.push_back(edit_of(*id, changes[i], options_.settings.config.retry_limit));
        places.push_back(i);
      }
    }
    if (wanted.empty()) {
      return results;
    }
    const auto changed = ask(deadline, [&](AdminSession& desk) { return desk.change(wanted, deadline); });
    for (std::size_t i = 0; i < places.size(); ++i) {
      const Change& change = changes[places[i]];
      ChangeResult& result = results[places[i]];
      if (!changed) {
        result = {ChangeStatus::failed, 0, changed.error()};
      } else if ((*changed)[i] == ChangeStatus::not_found) {
        result = {ChangeStatus::not_found, 0, no_message(name(), change.id)};
      } else if ((*changed)[i] == ChangeStatus::conflict) {
        const char* why = change.action == ChangeAction::redrive
                              ? " is no dead letter"
                              : " was sent, or has been tried again since it was read";
        result = {ChangeStatus::conflict, 0, Error(ErrorCode::conflict, "row " + change.id + " of " + name() + why)};
      }
    }
    return results;
  }
  Result<std::optional<PartOwner>> owner_of(const std::string& id, Deadline deadline) override {
    SLUICE_TRY(found, find(id, deadline));
    const std::uint32_t bucket = found->row.bucket;
    PartOwner owner{.part = "bucket " + std::to_string(bucket), .owner = ""};
    const std::vector<Selection> jobs = options_.jobs->all();
    if (jobs.empty()) {
      owner.owner.reset();  // nobody knows whom to ask for
    }
    for (const Selection& job : jobs) {
      const LockSpace space{job.job, options_.settings.config.buckets};
      SLUICE_TRY(holder, ask(deadline, [&](AdminSession& desk) { return desk.holder_of(space, bucket, deadline); }));
      if (!*holder) {
        owner.owner.reset();
        break;
      }
      if (!(*holder)->empty()) {
        *owner.owner += (owner.owner->empty() ? "" : ", ") + **holder + " for job " + job.job;
      }
    }
    return std::optional(std::move(owner));
  }
  Result<StoredMessage> edit(const std::string& /*id*/, std::int64_t /*version*/,
                             std::span<const ContentEdit> /*edits*/, Deadline /*deadline*/) override {
    return Error(ErrorCode::invalid,
                 "rows of an outbox are the application's: their content is not changed from here; use the database");
  }
  std::vector<PutResult> put(std::span<const StoredMessage> records, PutMode /*mode*/, Deadline /*deadline*/) override {
    return {records.size(), PutResult{PutStatus::failed, Error(ErrorCode::invalid,
                                                               "an outbox is written by its application alone, in the "
                                                               "transaction that made the event")}};
  }

 private:
  /// Asks a session, which is put back unless it is over.
  template <typename Question>
  auto ask(Deadline deadline, Question question) -> decltype(question(std::declval<AdminSession&>())) {
    std::unique_ptr<AdminSession> session;
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        session = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    // One that has been idle may have died meanwhile, which nobody need hear of.
    for (bool fresh = session == nullptr;; fresh = true) {
      if (!session) {
        SLUICE_TRY(opened, database_.open_admin(deadline));
        session = std::move(*opened);
      }
      auto answer = question(*session);
      if (!answer && ends_session(answer.error().code())) {
        session.reset();
        if (!fresh && answer.error().code() == ErrorCode::unavailable) {
          continue;
        }
        return answer;
      }
      const MutexLock lock(mutex_);
      idle_.push_back(std::move(session));
      return answer;
    }
  }
  Result<StoredRow> find(const std::string& id, Deadline deadline) {
    const auto key = key_of(id);
    auto found = key ? ask(deadline, [&](AdminSession& desk) { return desk.get(*key, deadline); })
                     : Result<StoredRow>(no_message(name(), id));
    return found || found.error().code() != ErrorCode::not_found ? std::move(found) : no_message(name(), id);
  }
  // Before the first look at rows: what is wrong with the table is better said by name than by the database's parser.
  Result<void> inspected(Deadline deadline) {
    {
      const MutexLock lock(mutex_);
      if (inspected_) {
        return {};
      }
    }
    SLUICE_TRY(findings, ask(deadline, [&](AdminSession& desk) { return desk.inspect(deadline); }));
    std::optional<Error> unfit;
    for (const Finding& finding : *findings) {
      if (finding.fatal) {
        unfit = Error(unfit ? unfit->code() : finding.code, (unfit ? unfit->message() + "; " : "") + finding.text);
      } else if (!unfit && options_.report) {
        options_.report(name() + ": " + finding.text);
      }
    }
    if (unfit) {
      return *unfit;
    }
    const MutexLock lock(mutex_);
    inspected_ = true;
    return {};
  }
  // A table without created_at does not say how old its rows are. What can be known is for how long the same one has
  // been the oldest; of the first look nothing.
  std::optional<WallTime> oldest_since(std::int64_t id) {
    const MutexLock lock(mutex_);
    const bool known = oldest_ && oldest_->id == id;
    if (!known) {
      oldest_ = Oldest{id, clock_.wall_now()};
    }
    return known ? std::optional(oldest_->seen_at) : std::nullopt;
  }
  /// What goes out with every message.
  Result<Origin> origin(Deadline deadline) {
    {
      const MutexLock lock(mutex_);
      if (origin_) {
        return *origin_;
      }
    }
    SLUICE_TRY(source, ask(deadline, [&](AdminSession& desk) { return desk.source_id(deadline); }));
    const MutexLock lock(mutex_);
    origin_ = origin_of(options_.settings.config.producer, *source);
    return *origin_;
  }
  StoredMessage message_of_row(StoredRow&& stored, const Origin& origin) const {
    StoredMessage message;
    const bool timed = stored.row.created_at.has_value();
    const std::uint32_t retries = stored.row.retries;
    const bool dead = stored.row.dead;
    message.message = message_of(std::move(stored.row), origin, WallTime{});
    message.message.attempt = retries;
    message.half = dead ? Half::dlq : Half::standard;
    message.version = static_cast<std::int64_t>(retries) + 1;  // 0 would stand for a record that has none
    message.created_at = message.message.sent_at;
    message.updated_at = message.message.sent_at;
    message.odd["updated_at"] = "";
    if (!timed) {
      message.odd["sent_at"] = message.odd["created_at"] = "";
    }
    message.invisible_until = stored.retry_at;
    message.failure.error = std::move(stored.last_error);
    message.failure.failed_at = stored.failed_at.value_or(WallTime{});
    if (dead && message.failure.error.empty()) {
      message.failure.error = "not known: the row has no 'last_error'; the job's log had the reason";
    }
    // A row that was rejected at its first try has as many as one that has used up all of them.
    message.failure.attempts = message.failure.error.empty() || dead ? 0 : retries;
    return message;
  }
  /// The row that is called so; nothing: none of this table can be. Only DynamoDB's have parts.
  std::optional<RowKey> key_of(const std::string& id) const {
    auto key = row_key_of(id, text_ids());
    const bool in_part = key && key->part != RowKey::kWhole;
    return in_part && options_.settings.config.kind != config::OutboxKind::dynamodb ? std::nullopt : std::move(key);
  }
  bool text_ids() const { return has_text_ids(options_.settings.config.columns); }
  std::string name() const { return "outbox:" + options_.settings.name; }

  // Fixed after construction.
  const OutboxOptions options_;
  Database& database_;
  const Clock& clock_;

  Mutex mutex_;
  std::vector<std::unique_ptr<AdminSession>> idle_ SLUICE_GUARDED_BY(mutex_);
  bool inspected_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<Origin> origin_ SLUICE_GUARDED_BY(mutex_);  ///< nothing: not yet known
  struct Oldest {
    std::int64_t id = 0;
    WallTime seen_at{};
  };
  std::optional<Oldest> oldest_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<const Selection> TakingJobs::add(const Selection& job) {
  auto added = std::make_shared<const Selection>(job);
  const MutexLock lock(mutex_);
  std::erase_if(with_source_, [](const auto& one) { return one.expired(); });
  with_source_.push_back(added);
  return added;
}

std::vector<Selection> TakingJobs::all() const {
  std::vector<Selection> jobs = standing_;
  const MutexLock lock(mutex_);
  for (const auto& one : with_source_) {
    if (const auto job = one.lock()) {
      jobs.push_back(*job);
    }
  }
  return jobs;
}

std::unique_ptr<Operator> make_outbox_operator(OutboxOptions options, Database& database, const Clock& clock) {
  return std::make_unique<OutboxOperator>(std::move(options), database, clock);
}

Result<std::unique_ptr<Source>> OutboxQueues::open_selected(const QueueAddress& address, const Selection& selection) {
  if (address.half == Half::dlq) {
    return Error(ErrorCode::invalid, "the dead letters of an outbox are redriven, and not worked on by a job");
  }
  return make_outbox_source(options_, selection, *database_, clock_, random_);
}

Result<std::unique_ptr<Sender>> OutboxQueues::open_sender(const std::string& queue) {
  return Error(ErrorCode::invalid,
               queue + " is written by its application alone, in the transaction that made the event; INSERT a row");
}

Result<std::unique_ptr<Operator>> OutboxQueues::open_operator(const std::string& /*queue*/) {
  return make_outbox_operator(options_, *database_, clock_);
}

Result<std::unique_ptr<NoticeBoard>> OutboxQueues::open_board(const std::string& queue) {
  return Error(ErrorCode::invalid, queue + " holds no notices of hosts");
}

}  // namespace sluice::queue::outbox
