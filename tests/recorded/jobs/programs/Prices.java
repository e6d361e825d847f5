import java.io.InputStream;
import java.net.URL;

/** Four threads ask a slow service for prices: the port is the argument. */
public class Prices {
    private static void fetchPrice(String address) throws Exception {
        try (InputStream answer = new URL(address).openConnection().getInputStream()) {
            answer.readAllBytes();
        }
    }

    public static void main(String[] arguments) throws Exception {
        String address = "http://127.0.0.1:" + arguments[0] + "/price";
        for (int number = 1; number <= 4; number++) {
            new Thread(() -> {
                try {
                    while (true) {
                        fetchPrice(address);
                    }
                } catch (Exception broken) {
                    broken.printStackTrace();
                }
            }, "fetcher-" + number).start();
        }
        Thread.sleep(1500);
        System.out.println("ready");
    }
}
