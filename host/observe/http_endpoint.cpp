#include "host/observe/http_endpoint.hpp"

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <stop_token>
#include <utility>

#include "base/mutex.hpp"
#include "base/text/host_and_port.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/text/visible.hpp"

namespace sluice::observe {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::string_view kScale = "/scale/";
constexpr std::size_t kMaxConnections = 64;
constexpr std::size_t kMaxHeaderBytes = 8 * 1024;
/// What is read and thrown away after a refused request, so that the client sees the answer and not a reset.
constexpr std::size_t kMaxDiscardedBytes = 64 * 1024;
constexpr std::chrono::seconds kRequestTime(5);
constexpr std::chrono::seconds kAnswerTime(5);
constexpr std::chrono::seconds kDiscardTime(1);
/// When the process has no descriptor left for a connection, the next try.
constexpr std::chrono::milliseconds kAcceptRetry(100);

const char* status_word(bool ok) { return ok ? "ok" : "failing"; }

/// Of code `invalid` for what is no "host:port".
Result<HostAndPort> parse_listen(const std::string& text) {
  const HostAndPort address = host_and_port(text);
  if (!parse_number<std::uint16_t>(address.port)) {
    return Error(ErrorCode::invalid, "http.listen \"" + text + "\" is no \"host:port\", such as \"127.0.0.1:9464\"");
  }
  return address;
}

Error listen_error(const std::string& listen, const error_code& cause) {
  const std::string where = "cannot listen on " + listen + ": ";
  if (cause == asio::error::address_in_use) {
    return {ErrorCode::conflict, where +
                                     "the port is in use; choose another in [http] listen, or end the process that "
                                     "has it (`ss -ltnp` names it)"};
  }
  if (cause == asio::error::access_denied) {
    return {ErrorCode::denied,
            where + "not permitted; ports below 1024 need a privilege, choose a higher one in [http]"};
  }
  return {ErrorCode::unavailable, where + cause.message() + "; set [http] listen to an address of this machine"};
}

struct Answer {
  http::status status = http::status::ok;
  std::string body;
  const char* type = "text/plain; charset=utf-8";
};

Answer probe_answer(const ProbeResult& result, bool json) {
  const http::status status = result.ok ? http::status::ok : http::status::service_unavailable;
  return json ? Answer{status, probe_json(result), "application/json"} : Answer{status, probe_text(result)};
}

/// What of a request its answer depends on.
struct Question {
  http::verb method = http::verb::get;
  std::string_view target;
  std::string_view accept;
};

Answer answer_for(const HttpHandlers& handlers, const Question& question) {
  const std::string_view path = question.target.substr(0, question.target.find('?'));
  const std::string_view query = question.target.substr(path.size());
  const bool json = query == "?format=json" || question.accept == "application/json";
  const bool scale = path.starts_with(kScale) && handlers.scale;
  if (!scale && path != "/healthz" && path != "/readyz" && path != "/metrics") {
    return {http::status::not_found, "not found; there are /healthz, /readyz, /metrics and /scale/QUEUE\n"};
  }
  if (question.method != http::verb::get && question.method != http::verb::head) {
    return {http::status::method_not_allowed, "only GET and HEAD\n"};
  }
  if (scale) {
    HttpReply reply = handlers.scale(percent_decoded_loosely(path.substr(kScale.size())));
    return {static_cast<http::status>(reply.status), std::move(reply.json), "application/json"};
  }
  if (path == "/healthz") {
    return probe_answer(handlers.health(), json);
  }
  if (path == "/readyz") {
    return probe_answer(handlers.ready(), json);
  }
  return {http::status::ok, handlers.metrics(), "text/plain; version=0.0.4; charset=utf-8"};
}

Answer refusal(const error_code& cause) {
  if (cause == http::error::header_limit) {
    return {http::status::request_header_fields_too_large, "header too large\n"};
  }
  return {http::status::bad_request, "not an HTTP request\n"};
}

/// One connection: reads one request header, answers, closes. Lives as long as an operation of it is pending.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Ended = std::function<void(std::uint64_t id)>;

  Connection(std::uint64_t id, tcp::socket socket, const HttpHandlers& handlers, Ended ended)
      : id_(id), stream_(std::move(socket)), handlers_(handlers), ended_(std::move(ended)) {
    parser_.header_limit(kMaxHeaderBytes);
  }

  void run() {
    stream_.expires_after(kRequestTime);
    http::async_read_header(stream_, buffer_, parser_,
                            [self = shared_from_this()](error_code failed, std::size_t) { self->on_header(failed); });
  }

  /// Makes pending operations fail; their handlers then find nothing to do.
  void close() {
    closed_ = true;
    stream_.close();
  }

 private:
  void on_header(const error_code& failed) {
    if (closed_ || failed == http::error::end_of_stream || failed == beast::error::timeout) {
      return end();
    }
    const bool understood = !failed;
    if (!understood && failed.category() != make_error_code(http::error::bad_method).category()) {
      return end();  // the network's own failure: nobody is there to answer
    }
    const auto& request = parser_.get();
    const auto view = [](beast::string_view text) { return std::string_view(text.data(), text.size()); };
    const Question question{request.method(), view(request.target()), view(request[http::field::accept])};
    const Answer answer = understood ? answer_for(handlers_, question) : refusal(failed);
    const bool head = understood && request.method() == http::verb::head;
    const bool complete = understood && (head || request.method() == http::verb::get);
    write(answer, head, complete);
  }

  void write(const Answer& answer, bool head, bool complete) {
    response_.version(11);
    response_.result(answer.status);
    response_.set(http::field::content_type, answer.type);
    response_.set(http::field::cache_control, "no-store");
    if (answer.status == http::status::method_not_allowed) {
      response_.set(http::field::allow, "GET, HEAD");
    }
    response_.keep_alive(false);
    response_.content_length(answer.body.size());
    response_.body() = head ? std::string() : answer.body;
    stream_.expires_after(kAnswerTime);
    http::async_write(stream_, response_, [self = shared_from_this(), complete](error_code failed, std::size_t) {
      if (failed || complete || self->closed_) {
        return self->end();
      }
      self->stream_.expires_after(kDiscardTime);
      self->discard();
    });
  }

  /// Reads on until the client closes: closing with bytes unread would send a reset that can overtake the answer.
  void discard() {
    error_code ignored;
    stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
    stream_.async_read_some(asio::buffer(scratch_), [self = shared_from_this()](error_code failed, std::size_t size) {
      self->discarded_ += size;
      if (failed || self->closed_ || self->discarded_ > kMaxDiscardedBytes) {
        return self->end();
      }
      self->discard();
    });
  }

  void end() {
    if (!closed_) {
      error_code ignored;
      stream_.socket().shutdown(tcp::socket::shutdown_both, ignored);
      close();
    }
    ended_(id_);
  }

  const std::uint64_t id_;
  beast::tcp_stream stream_;
  const HttpHandlers& handlers_;
  const Ended ended_;
  beast::flat_buffer buffer_{kMaxHeaderBytes};
  http::request_parser<http::empty_body> parser_;
  http::response<http::string_body> response_;
  std::array<char, 1024> scratch_{};
  std::size_t discarded_ = 0;
  bool closed_ = false;
};

class Server final : public HttpEndpoint {
 public:
  explicit Server(HttpHandlers handlers) : handlers_(std::move(handlers)) {}
  ~Server() override { end(); }

  error_code listen(const HostAndPort& address) {
    error_code failed;
    tcp::resolver resolver(io_);
    const auto flags = tcp::resolver::passive | tcp::resolver::numeric_service;
    const auto found = resolver.resolve(address.host, address.port, flags, failed);
    if (failed) {
      return failed;
    }
    // ":port" resolves to 0.0.0.0 first and :: second; the latter, not restricted to IPv6, takes both.
    tcp::endpoint endpoint = found.begin()->endpoint();
    for (const auto& entry : found) {
      if (address.host.empty() && entry.endpoint().address().is_v6()) {
        endpoint = entry.endpoint();
      }
    }
    failed = bind(endpoint);
    if (failed == asio::error::address_family_not_supported && endpoint.address().is_v6() && address.host.empty()) {
      failed = bind(tcp::endpoint(tcp::v4(), endpoint.port()));
    }
    return failed;
  }

  std::string address() const override { return address_; }

  Result<void> start() override {
    asio::post(io_, [this] { accept(); });
    return thread_.start([this](const std::stop_token&) { serve(); });
  }
  void stop() override { end(); }

 private:
  void end() {
    const MutexLock lock(mutex_);
    io_.stop();
    thread_.stop();
    error_code ignored;
    acceptor_.close(ignored);
    for (auto& [id, connection] : connections_) {
      connection->close();
    }
    connections_.clear();
  }

  error_code bind(const tcp::endpoint& endpoint) {
    error_code failed;
    acceptor_.close(failed);
    if (acceptor_.open(endpoint.protocol(), failed)) {
      return failed;
    }
    acceptor_.set_option(tcp::acceptor::reuse_address(true), failed);
    if (endpoint.address().is_v6()) {
      acceptor_.set_option(asio::ip::v6_only(false), failed);
    }
    if (acceptor_.bind(endpoint, failed) || acceptor_.listen(asio::socket_base::max_listen_connections, failed)) {
      return failed;
    }
    const auto bound = acceptor_.local_endpoint(failed);
    const std::string host = bound.address().to_string();
    address_ = (bound.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(bound.port());
    return failed;
  }

  /// The thread. An exception (memory) costs one connection, not the endpoint.
  void serve() {
    while (!io_.stopped()) {
      try {
        io_.run();
      } catch (const std::exception&) {
        continue;
      }
    }
  }

  void accept() {
    acceptor_.async_accept([this](error_code failed, tcp::socket socket) {
      if (failed == asio::error::operation_aborted) {
        return;
      }
      if (failed) {
        retry_.expires_after(kAcceptRetry);
        retry_.async_wait([this](error_code) { accept(); });
        return;
      }
      accept();  // first, so that whatever goes wrong with this connection cannot end accepting
      admit(std::move(socket));
    });
  }

  void admit(tcp::socket socket) {
    if (connections_.size() >= kMaxConnections) {
      connections_.begin()->second->close();
      connections_.erase(connections_.begin());
    }
    const std::uint64_t id = next_id_++;
    auto connection = std::make_shared<Connection>(id, std::move(socket), handlers_,
                                                   [this](std::uint64_t ended) { connections_.erase(ended); });
    connections_.emplace(id, connection);
    connection->run();
  }

  // Fixed after construction.
  const HttpHandlers handlers_;
  std::string address_;
  // Touched only by the thread, and by stop() once it has ended. A pending operation owns its connection and refers to
  // the map, so io_, which destroys pending operations, is declared after it.
  std::uint64_t next_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer retry_{io_};
  Mutex mutex_;  ///< of those who stop it
  // Last, so that it ends before what it uses.
  runtime::ServiceThread thread_{"sluice-http"};
};

}  // namespace

std::string probe_json(const ProbeResult& result) {
  JsonWriter json;
  json.begin_object();
  json.member("status", status_word(result.ok));
  json.member("text", result.text);
  json.key("components");
  json.begin_object();
  for (const Component& component : result.components) {
    json.key(component.name);
    json.begin_object();
    json.member("status", status_word(component.ok));
    json.member("text", component.text);
    json.end_object();
  }
  json.end_object();
  json.end_object();
  return json.take_line();
}

std::string probe_text(const ProbeResult& result) {
  std::string body = result.text + "\n";
  for (const Component& component : result.components) {
    append_visible(body, component.name + ": " + component.text);
    body += '\n';
  }
  return body;
}

Result<std::unique_ptr<HttpEndpoint>> HttpEndpoint::open(const std::string& listen, HttpHandlers handlers) {
  SLUICE_TRY(address, parse_listen(listen));
  auto server = std::make_unique<Server>(std::move(handlers));
  if (const auto failed = server->listen(*address)) {
    return listen_error(listen, failed);
  }
  return std::unique_ptr<HttpEndpoint>(std::move(server));
}

namespace {

constexpr std::size_t kMaxAnswerBytes = 64 * 1024;

/// Where a process of this machine reaches "host:port".
std::string loopback_of(std::string_view host) {
  return host.empty() || host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : std::string(host);
}

}  // namespace

Result<ProbeAnswer> probe(const std::string& listen, const std::string& path, std::chrono::milliseconds patience) {
  const auto silence = [&listen](const std::string& why) {
    return Error(ErrorCode::unavailable, "no host answers on " + listen + ": " + why);
  };
  SLUICE_TRY(address, parse_listen(listen));
  const std::string host = loopback_of(address->host);
  asio::io_context io;
  error_code failed;
  const auto found = tcp::resolver(io).resolve(host, address->port, failed);
  if (failed) {
    return silence(failed.message());
  }
  beast::tcp_stream stream(io);
  stream.expires_after(patience);
  http::request<http::empty_body> request(http::verb::get, path, 11);
  request.set(http::field::host, host);
  request.keep_alive(false);
  http::response_parser<http::string_body> parser;
  parser.body_limit(kMaxAnswerBytes);
  beast::flat_buffer buffer;
  bool connected = false;
  stream.async_connect(found, [&](error_code refused, const tcp::endpoint&) {
    failed = refused;
    if (refused) {
      return;
    }
    connected = true;
    http::async_write(stream, request, [&](error_code unsent, std::size_t) {
      failed = unsent;
      if (!unsent) {
        http::async_read(stream, buffer, parser, [&](error_code unread, std::size_t) { failed = unread; });
      }
    });
  });
  io.run();
  if (failed) {
    return silence(connected ? "it accepts connections, and does not answer as a host does" : failed.message());
  }
  return ProbeAnswer{static_cast<int>(parser.get().result_int()), parser.get().body()};
}

}  // namespace sluice::observe
