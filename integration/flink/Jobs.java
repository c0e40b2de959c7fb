import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Flink in one process, told what to do by lines of its input: a verb, an argument and a statement, divided by tabs.
 *
 * <p>Each line is answered by one line, "ok" or "error", a tab and a text. Rows are divided by the character 30, their
 * values by the character 31.
 */
public final class Jobs {
  private static final char ROW = 30;
  private static final char VALUE = 31;
  private static final int SECONDS = 120;

  private final TableEnvironment streaming = make(EnvironmentSettings.newInstance().inStreamingMode());
  private final TableEnvironment batch = make(EnvironmentSettings.newInstance().inBatchMode());
  private final Map<String, JobClient> jobs = new HashMap<>();

  private static TableEnvironment make(EnvironmentSettings.Builder mode) {
    Configuration settings = new Configuration();
    settings.setString("execution.checkpointing.interval", "1s");
    settings.setString("restart-strategy", "none");
    settings.setString("parallelism.default", "1");
    settings.setString("rest.bind-address", "127.0.0.1");
    settings.setString("rest.address", "127.0.0.1");
    settings.setString("table.local-time-zone", "UTC");
    settings.setString("taskmanager.memory.network.min", "64m");
    settings.setString("taskmanager.memory.network.max", "64m");
    settings.setString("taskmanager.memory.managed.size", "64m");
    return TableEnvironment.create(mode.withConfiguration(settings).build());
  }

  private String answer(String verb, String argument, String statement) throws Exception {
    switch (verb) {
      case "declare": // a table, for both kinds of jobs
        streaming.executeSql(statement);
        batch.executeSql(statement);
        return "";
      case "start":
        jobs.put(argument, streaming.executeSql(statement).getJobClient().orElseThrow());
        return "";
      case "state":
        return jobs.get(argument).getJobStatus().get().toString();
      case "stop":
        jobs.remove(argument).cancel().get(SECONDS, TimeUnit.SECONDS);
        return "";
      case "rows":
        return read(batch.executeSql(statement));
      default:
        throw new IllegalArgumentException(verb);
    }
  }

  private static String read(TableResult result) throws Exception {
    List<String> rows = new ArrayList<>();
    try (CloseableIterator<Row> found = result.collect()) {
      while (found.hasNext()) {
        Row row = found.next();
        List<String> values = new ArrayList<>();
        for (int i = 0; i < row.getArity(); i++) {
          values.add(String.valueOf(row.getField(i)));
        }
        rows.add(String.join(String.valueOf(VALUE), values));
      }
    }
    return String.join(String.valueOf(ROW), rows);
  }

  /** Answers until the input ends. */
  public static void main(String[] arguments) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err); // what libraries print is no answer
    Jobs jobs = new Jobs();
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split("\t", 3);
      String text;
      try {
        text = "ok\t" + jobs.answer(parts[0], parts[1], parts[2]);
      } catch (Exception | NoClassDefFoundError error) {
        error.printStackTrace();
        text = "error\t" + error;
      }
      answers.println(text.replace('\n', ' '));
      answers.flush();
    }
    System.exit(0); // jobs that run would keep the process
  }
}
