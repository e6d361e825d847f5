/** Keeps most of a small heap, and makes strings: the collector runs all the time. */
public class Report {
    public static void main(String[] arguments) {
        Object[] rows = new Object[420_000];
        for (int number = 0; number < rows.length; number++) {
            rows[number] = new byte[64];
        }
        for (int number = 0; ; number++) {
            rows[number % rows.length] = ("row " + number).getBytes();
            if (number == 1_000_000) {
                System.out.println("ready");
            }
        }
    }
}
