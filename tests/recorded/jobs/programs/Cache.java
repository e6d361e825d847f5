/** Four writers put into one cache; who has its monitor sleeps. */
public class Cache {
    private int size;

    synchronized void put() throws InterruptedException {
        size++;
        flushToStore();
    }

    private void flushToStore() throws InterruptedException {
        Thread.sleep(10);
    }

    public static void main(String[] arguments) throws InterruptedException {
        Cache cache = new Cache();
        for (int number = 1; number <= 4; number++) {
            new Thread(() -> {
                try {
                    while (true) {
                        cache.put();
                    }
                } catch (InterruptedException ended) {
                    Thread.currentThread().interrupt();
                }
            }, "writer-" + number).start();
        }
        Thread.sleep(1000);
        System.out.println("ready");
    }
}
