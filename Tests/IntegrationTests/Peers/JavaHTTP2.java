import java.net.ProxySelector;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.security.MessageDigest;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** HTTP/2 by Java's HttpClient, over a proxy: JavaHTTP2.java PROXY_PORT URL. As go_http2.go fetch. */
public class JavaHTTP2 {
    private static String digest(byte[] bytes) {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (java.security.GeneralSecurityException error) {
            throw new IllegalStateException(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_2)
            .proxy(ProxySelector.of(new InetSocketAddress("127.0.0.1", Integer.parseInt(arguments[0])))).build();
        var url = URI.create(arguments[1]);
        try {
            var calls = IntStream.range(0, 20).mapToObj(count -> client.sendAsync(
                HttpRequest.newBuilder(url).build(), HttpResponse.BodyHandlers.ofByteArray())).collect(Collectors.toList());
            var digests = new HashSet<String>();
            var statuses = new HashSet<Integer>();
            HttpResponse<byte[]> first = null;
            for (var call : calls) {
                first = call.get();
                digests.add(digest(first.body()));
                statuses.add(first.statusCode());
            }
            var echo = client.send(
                HttpRequest.newBuilder(url.resolve("/echo")).POST(HttpRequest.BodyPublishers.ofByteArray(first.body())).build(),
                HttpResponse.BodyHandlers.ofString()).body();
            var isSame = digests.equals(new HashSet<>(List.of(digest(first.body())))) && echo.contains(digest(first.body()));
            System.out.printf(
                "{\"protocol\": \"%s\", \"statuses\": %s, \"length\": %d, \"isSame\": %b, \"echo\": %d}%n", first.version(), statuses,
                first.body().length, isSame, echo.contains("\"length\": " + first.body().length) ? first.body().length : -1);
        } catch (java.util.concurrent.ExecutionException | java.io.IOException error) {
            System.out.printf("{\"failed\": \"%s\"}%n", String.valueOf(error).replace('"', '\'').replace('\n', ' '));
            System.exit(1);
        }
    }
}
