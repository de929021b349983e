package odfpy;

/**
 * Loads classes before they are needed, in a thread of its own.
 *
 * They are loaded and linked, which is most of the work, but not initialized: whatever their static code does is still
 * done when it would be done otherwise, and in no other thread.
 */
public final class FirstClasses extends Thread {
    private final ClassLoader loader = ClassLoader.getSystemClassLoader();
    private final String[] names;

    /** Begin with classes, by their full names, in this order. */
    public FirstClasses(String names) {
        super("odfpy-first-classes");
        this.names = names.split("\n");
        setDaemon(true);
        start();
    }

    public void run() {
        for (int at = 0; at < names.length; at++) {
            try {
                Class.forName(names[at], false, loader).getDeclaredConstructors(); // which links the class
            } catch (Throwable error) {
                // Another version of Spark may have no such class: whoever needs one will say so.
            }
        }
    }
}
