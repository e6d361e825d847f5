// Threads that sleep, wait for a monitor, contend for a lock and take tasks. Until it is killed.
import java.util.concurrent.*;
import java.util.concurrent.locks.*;

public class Waits {
    static final ReentrantLock lock = new ReentrantLock();
    static final Object monitor = new Object();
    static void sleeper() { for (;;) try { Thread.sleep(1); } catch (InterruptedException e) { return; } }
    static void locker() { for (;;) { lock.lock(); try { LockSupport.parkNanos(500_000); } finally { lock.unlock(); } } }
    static void waiter() { for (;;) synchronized (monitor) { try { monitor.wait(1); } catch (InterruptedException e) { return; } } }
    public static void main(String[] a) throws Exception {
        new Thread(Waits::sleeper, "sleeper").start();
        new Thread(Waits::locker, "locker0").start();
        new Thread(Waits::locker, "locker1").start();
        new Thread(Waits::waiter, "waiter").start();
        var pool = Executors.newFixedThreadPool(2);
        for (;;) {
            Future<Integer> f = pool.submit(() -> { byte[] b = new byte[100000]; return b.length; });
            f.get();
            Thread.sleep(1);
        }
    }
}
