#include "host/observe/http_endpoint.hpp"

#include <fcntl.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "base/text/host_and_port.hpp"
#include "base/text/json_writer.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "base/text/visible.hpp"
#include "host/observe/connection_server.hpp"

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
constexpr std::size_t kMaxAnswerBytes = 64 * 1024;
constexpr std::chrono::seconds kRequestTime(5);
constexpr std::chrono::seconds kAnswerTime(5);
constexpr std::chrono::seconds kDiscardTime(1);

const char* status_word(bool ok) { return ok ? "ok" : "failing"; }

/// Of code `invalid` for what is no "host:port".
Result<HostAndPort> parse_listen(const std::string& text) {
  const HostAndPort address = host_and_port(text);
  if (!parse_number<std::uint16_t>(address.port)) {
    return Error(ErrorCode::invalid, "http.listen \"" + text + "\" is no \"host:port\", such as \"127.0.0.1:9464\"");
  }
  return address;
}

/// Where a process of this machine reaches "host:port".
std::string loopback_of(std::string_view host) {
  return host.empty() || host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : std::string(host);
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

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

/// False: it is the network's own failure, and nobody is there to answer.
bool is_about_http(const error_code& failed) {
  return failed.category() == make_error_code(http::error::bad_method).category() &&
         failed != http::error::end_of_stream;
}

Answer refusal(const error_code& cause) {
  if (cause == http::error::header_limit) {
    return {http::status::request_header_fields_too_large, "header too large\n"};
  }
  return {http::status::bad_request, "not an HTTP request\n"};
}

http::response<http::string_body> response_of(Answer answer, bool head) {
  http::response<http::string_body> response(answer.status, 11);
  response.set(http::field::content_type, answer.type);
  response.set(http::field::cache_control, "no-store");
  if (answer.status == http::status::method_not_allowed) {
    response.set(http::field::allow, "GET, HEAD");
  }
  response.keep_alive(false);
  response.content_length(answer.body.size());
  response.body() = head ? std::string() : std::move(answer.body);
  return response;
}

using Stream = ConnectionServer<tcp>::Stream;

/// Reads on until the client closes: closing with bytes unread would send a reset that can overtake the answer.
asio::awaitable<void> discard(Stream stream) {
  error_code ignored;
  stream->socket().shutdown(tcp::socket::shutdown_send, ignored);
  stream->expires_after(kDiscardTime);
  std::array<char, 1024> scratch{};
  for (std::size_t discarded = 0; discarded <= kMaxDiscardedBytes;) {
    const auto [failed, size] = co_await stream->async_read_some(asio::buffer(scratch), kTuple);
    if (failed) {
      co_return;
    }
    discarded += size;
  }
}

/// One connection: reads one request header, and answers. Whoever closes the stream ends it.
asio::awaitable<void> converse(Stream stream, const HttpHandlers& handlers) {
  beast::flat_buffer buffer(kMaxHeaderBytes);
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  stream->expires_after(kRequestTime);
  const auto [failed, size] = co_await http::async_read_header(*stream, buffer, parser, kTuple);
  if (failed && !is_about_http(failed)) {
    co_return;
  }
  const auto& request = parser.get();
  const bool head = !failed && request.method() == http::verb::head;
  const bool complete = head || (!failed && request.method() == http::verb::get);
  const auto response = response_of(
      failed ? refusal(failed)
             : answer_for(handlers, {request.method(), view(request.target()), view(request[http::field::accept])}),
      head);
  stream->expires_after(kAnswerTime);
  const auto [unsent, sent] = co_await http::async_write(*stream, response, kTuple);
  if (!unsent && !complete) {
    co_await discard(stream);
  }
  error_code ignored;
  stream->socket().shutdown(tcp::socket::shutdown_both, ignored);
}

class Server final : public HttpEndpoint {
 public:
  explicit Server(HttpHandlers handlers) : handlers_(std::move(handlers)) {}

  error_code listen(const HostAndPort& address) {
    if (address.host.empty()) {
      // Not restricted to IPv6 the socket takes both.
      const auto port = parse_number<std::uint16_t>(address.port).value_or(0);
      const error_code failed = bind({tcp::v6(), port});
      return failed == asio::error::address_family_not_supported ? bind({tcp::v4(), port}) : failed;
    }
    error_code failed;
    const auto found =
        tcp::resolver(server_.io()).resolve(address.host, address.port, tcp::resolver::numeric_service, failed);
    return failed ? failed : bind(found.begin()->endpoint());
  }

  std::string address() const override { return address_; }
  Result<void> start() override { return server_.start(); }
  void stop() override { server_.stop(); }

 private:
  error_code bind(const tcp::endpoint& endpoint) {
    tcp::acceptor& acceptor = server_.acceptor();
    error_code failed;
    acceptor.close(failed);
    if (acceptor.open(endpoint.protocol(), failed)) {
      return failed;
    }
    ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
    acceptor.set_option(tcp::acceptor::reuse_address(true), failed);
    if (endpoint.address().is_v6()) {
      acceptor.set_option(asio::ip::v6_only(false), failed);
    }
    if (acceptor.bind(endpoint, failed) || acceptor.listen(asio::socket_base::max_listen_connections, failed)) {
      return failed;
    }
    const auto bound = acceptor.local_endpoint(failed);
    const std::string host = bound.address().to_string();
    address_ = (bound.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(bound.port());
    return failed;
  }

  // Fixed after construction.
  const HttpHandlers handlers_;
  std::string address_;
  // Last, so that its thread ends before what it uses.
  ConnectionServer<tcp> server_{"sluice-http", kMaxConnections,
                                [this](Stream stream) { return converse(std::move(stream), handlers_); }};
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
