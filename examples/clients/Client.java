import java.io.FileInputStream;
import java.net.URL;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Reconnects for each request: java Client.java URL CA VISITS CONCURRENT default|resume */
public class Client {
    public static void main(String[] arguments) throws Exception {
        // Each request uses a new connection.
        System.setProperty("http.keepAlive", "false");
        var url = new URL(arguments[0]);
        var ca = arguments[1];
        // Java resumes automatically if all connections use one SSLContext, which stores the sessions.
        var shared = arguments[4].equals("resume") ? context(ca) : null;
        for (int visit = 0; visit < Integer.parseInt(arguments[2]); visit++) get(url, shared, ca);
        var threads = new Thread[Integer.parseInt(arguments[3])];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> get(url, shared, ca));
            threads[i].start();
        }
        for (var thread : threads) thread.join();
    }

    static void get(URL url, SSLContext shared, String ca) {
        try {
            var connection = (HttpsURLConnection) url.openConnection();
            connection.setSSLSocketFactory((shared != null ? shared : context(ca)).getSocketFactory());
            try (var body = connection.getInputStream()) {
                body.readAllBytes();
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    static SSLContext context(String ca) throws Exception {
        var store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (var file = new FileInputStream(ca)) {
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(file));
        }
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        var context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        // Maximum number of cached sessions; this is the default.
        context.getClientSessionContext().setSessionCacheSize(20480);
        return context;
    }
}
