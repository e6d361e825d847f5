/** Two threads move money between two accounts, each with the monitor that the other one needs. */
public class Transfer {
    private final Object[] accounts = {new Object(), new Object()};

    private void transfer(int source, int target) throws InterruptedException {
        synchronized (accounts[source]) {
            Thread.sleep(300);
            synchronized (accounts[target]) {
                System.out.println("transferred");
            }
        }
    }

    private void start(String name, int source, int target) {
        Thread thread = new Thread(() -> {
            try {
                transfer(source, target);
            } catch (InterruptedException ended) {
                Thread.currentThread().interrupt();
            }
        }, name);
        thread.start();
    }

    public static void main(String[] arguments) throws InterruptedException {
        Transfer bank = new Transfer();
        bank.start("transfer-east", 0, 1);
        bank.start("transfer-west", 1, 0);
        Thread.sleep(1000);
        System.out.println("ready");
    }
}
