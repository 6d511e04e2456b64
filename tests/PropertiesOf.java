import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.TreeMap;

/** Reads files between bytes 1 and writes what Java finds in each: bytes 2 after names, 3 after values, 1 after files. */
class PropertiesOf {
    public static void main(String[] args) throws Exception {
        String all = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        StringBuilder found = new StringBuilder();
        for (String file : all.split("\u0001", -1)) {
            Properties properties = new Properties();
            try {
                properties.load(new StringReader(file));
                new TreeMap<>(properties).forEach((name, value) -> found.append(name + "\u0002" + value + "\u0003"));
            } catch (IllegalArgumentException malformed) {
                found.append("malformed");
            }
            found.append("\u0001");
        }
        System.out.write(found.toString().getBytes(StandardCharsets.UTF_8));
        System.out.flush();
    }
}
