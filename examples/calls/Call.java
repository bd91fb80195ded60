// Call.java
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.UUID;

/**
 * Asks an agent over REST, and prints each event as it comes, as JSON: what reads that is yours to choose.
 * Usage: java Call.java http://HOST:PORT WORDS
 */
public final class Call {
    public static void main(String[] arguments) throws Exception {
        String text = arguments[1].replace("\\", "\\\\").replace("\"", "\\\"");
        String body = """
            {"message": {"messageId": "%s", "role": "ROLE_USER", "parts": [{"text": "%s"}]}}
            """.formatted(UUID.randomUUID(), text);
        var request = HttpRequest.newBuilder(URI.create(arguments[0] + "/message:stream"))
            .header("A2A-Version", "1.0")
            .header("Content-Type", "application/json")
            .POST(HttpRequest.BodyPublishers.ofString(body))
            .build();
        var reply = HttpClient.newHttpClient().send(request, BodyHandlers.ofLines());
        String start = reply.statusCode() == 200 ? "data: " : "";
        reply.body()
            .filter(line -> line.startsWith(start))
            .forEach(line -> System.out.println(line.substring(start.length())));
        System.exit(reply.statusCode() == 200 ? 0 : 1);
    }
}
